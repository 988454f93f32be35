package zkserver_test

import (
	"testing"
)

// TestLoginRequired is about what a client is told that has not logged in where it must.
func TestLoginRequired(t *testing.T) {
	t.Parallel()
	onLogin(t, loginRequired, func(t *testing.T, srv subject) {
		for name, send := range map[string]struct {
			xid, op int32
			payload []byte
		}{
			"read":         {1, 4, exists("/")},
			"write":        {2, 1, create("/nope")},
			"ping":         {-2, 11, nil},
			"setWatches":   {-8, 101, body(int64(0), []string{}, []string{}, []string{})},
			"closeSession": {3, -11, nil},
			"whoAmI":       {4, 107, nil},
			"unknown":      {5, 77, nil},
		} {
			c := rawSession(t, srv.addr)
			if err := c.sendXid(send.xid, send.op, send.payload); err != nil {
				t.Fatal(err)
			}
			a, err := c.receive()
			if err != nil || a.xid != send.xid || a.zxid != 0 || a.err != -124 || len(a.body) > 0 {
				t.Errorf("%s: %+v, %v", name, a, err)
			}
			isOver(t, c)
			again := dialRaw(t, srv.addr)
			if err := again.handshake(0, 30_000, c.session, c.password); err != nil {
				t.Errorf("%s: the session is gone: %v", name, err)
			}
		}
		c := rawSession(t, srv.addr)
		must(t, c, 100, body(int32(0), "digest", []byte("u:p")), 0)
		must(t, c, 4, exists("/"), -124)
		isOver(t, c)
		c = rawSession(t, srv.addr)
		if got := outcome(c.login(response{user: "docent", password: "no"})); got != "-124" {
			t.Errorf("wrong password: %s", got)
		}
		isOver(t, c)
		must(t, srv.login(t, "docent"), 4, exists("/"), 0)
	})
}

func TestLoginEither(t *testing.T) {
	t.Parallel()
	onLogin(t, loginEither, func(t *testing.T, srv subject) {
		c := rawSession(t, srv.addr)
		must(t, c, 4, exists("/"), -124)
		c = rawSession(t, srv.addr)
		must(t, c, 100, body(int32(0), "digest", []byte("u:p")), 0)
		must(t, c, 4, exists("/"), 0)
		must(t, srv.login(t, "docent"), 4, exists("/"), 0)
		if got := outcome(rawSession(t, srv.addr).login(response{user: "docent", password: "no"})); got != "-124" {
			t.Errorf("wrong password: %s", got)
		}
	})
}

// TestLoginForgiven is about a server that lets clients go on whose login fails.
func TestLoginForgiven(t *testing.T) {
	t.Parallel()
	onLogin(t, loginForgiving, func(t *testing.T, srv subject) {
		c := rawSession(t, srv.addr)
		if got := outcome(c.login(response{user: "docent", password: "no"})); got != "no proof" {
			t.Errorf("wrong password: %s", got)
		}
		must(t, c, 4, exists("/"), 0)
		if got := identities(t, c); len(got) != 0 {
			t.Errorf("is %v", got)
		}
		if code, token, err := c.token([]byte{}); code != 0 || token != "<null>" || err != nil {
			t.Errorf("another login on that connection: %d %q %v", code, token, err)
		}
		// A long token before the challenge changes nothing.
		c = rawSession(t, srv.addr)
		if code, token, err := c.token(make([]byte, 4097)); code != 0 || token != "<null>" || err != nil {
			t.Errorf("a token before the challenge: %d %q %v", code, token, err)
		}
		if err := c.login(response{user: "docent", password: "s3cret"}); err != nil {
			t.Error(err)
		}
		// A second login fails, and the first one stays.
		if code, token, err := c.token([]byte{}); code != 0 || token != "<null>" || err != nil {
			t.Errorf("a second login: %d %q %v", code, token, err)
		}
		if got := identities(t, c); len(got) != 1 {
			t.Errorf("is %v", got)
		}
	})
}

// TestLoginNone is about a server without a login configuration.
func TestLoginNone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, srv subject) {
		c := rawSession(t, srv.addr)
		for range 2 {
			if code, token, err := c.token([]byte{}); code != 0 || token != "<null>" || err != nil {
				t.Errorf("%d %q %v", code, token, err)
			}
		}
		must(t, c, 1, createFor(srv.root+"/a", acl(31, "sasl", "docent")), -114)
		if _, _, err := c.token(null{}); kindOfError(err) != "closed" {
			t.Errorf("a null token: %v", err)
		}
	})
}
