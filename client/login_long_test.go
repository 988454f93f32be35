package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// A client that only reads may say who it is: that writes nothing.
func TestReaderAddsCredentials(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.secret("/one", "u", "1")
		r.secret("/two", "u", "2")
		c := r.Connect("a", client.WithReadOnly())
		if r.reads(c, "/one") {
			t.Fatal("nothing is tested")
		}
		r.Check(c.AddAuth(r.Ctx, "digest", "u:1"))
		if !r.reads(c, "/one") {
			t.Error("the credentials do not serve")
		}
		r.Check(c.ReplaceAuth(r.Ctx, "digest", "u:2"))
		r.Srv.CutAll()
		if r.reads(c, "/one") || !r.reads(c, "/two") {
			t.Error("the credentials are not replaced")
		}
		if _, err := c.Create(r.Ctx, "/x", nil); !errors.Is(err, client.ErrReadOnly) {
			t.Error(err)
		}
	})
}

// bubbleOf is how stacks name the bubble of the goroutine that comes first.
func bubbleOf(stacks []byte) string {
	first, _, _ := strings.Cut(string(stacks), "]:")
	return first[strings.LastIndex(first, ", synctest bubble"):] + "]"
}

// 1,000 logins on one client leave nothing behind.
func TestThousandLogins(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", docentLogin(), client.WithAuth("digest", "u:p"))
		s := r.Session(c)
		inBubble := func() int { // goroutines of this test alone
			synctest.Wait()
			stacks := make([]byte, 8<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			own := bubbleOf(stacks)
			return strings.Count(string(stacks), own)
		}
		round := func(n int) {
			for i := range n {
				r.Srv.CutAll()
				if i%3 == 0 {
					r.Check(c.ReplaceAuth(r.Ctx, "digest", fmt.Sprint("u:", i)))
				}
				_, _, err := c.Exists(r.Ctx, "/")
				r.Check(err)
			}
		}
		round(50)
		before, running := r.Srv.ConnCount(), inBubble()
		round(1000)
		if n := r.Srv.Count(zktest.OpSASL); n < 2000 {
			t.Errorf("%d tokens", n)
		}
		if after := r.Srv.ConnCount(); after != before || r.Session(c).ID() != s.ID() {
			t.Errorf("%d connections, %d before", after, before)
		}
		if n := len(r.Srv.Sessions()); n != 1 {
			t.Errorf("%d sessions", n)
		}
		if now := inBubble(); now != running {
			t.Errorf("%d goroutines, %d before", now, running)
		}
	}, zktest.WithSASLUser("docent", "s3cret"), zktest.WithRequiredAuth())
}

// No password is in an error, a log or a formatted value, whatever fails.
func TestNoPasswordAnywhere(t *testing.T) {
	t.Parallel()
	const word = "Pa55-of-mine"
	faults := map[string]func(*zktest.Server){
		"none": func(*zktest.Server) {}, "wrong proof": func(s *zktest.Server) { s.WrongProof(zktest.Match{Times: 4}) },
		"null": func(s *zktest.Server) { s.NullToken(zktest.Match{Times: 4}) },
		"hang up": func(s *zktest.Server) {
			s.DropBefore(zktest.Match{Op: zktest.OpSASL, Times: 4})
		},
		"throttled": func(s *zktest.Server) { s.Fail(zktest.Match{Op: zktest.OpSASL, Times: 4}, -127) },
		"setAuth":   func(s *zktest.Server) { s.Fail(zktest.Match{Op: zktest.OpAuth, Times: 4}, -115) },
	}
	for name, fault := range faults {
		for user, server := range map[string]string{"docent": word, "nobody": "other"} {
			bubble(t, func(r *rig) {
				var log bytes.Buffer
				fault(r.Srv)
				var said []string
				say := func(what ...any) {
					said = append(said, fmt.Sprintf("%v %+v %#v %s %q", what, what, what, what, what))
				}
				opts := []client.Option{
					client.WithSASL(client.DigestMD5(user, word)), client.WithAuth("digest", "u:"+word), client.WithLazyConnect(),
					client.WithLogger(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug - 4}))),
				}
				c, err := r.Open("zk:2181", "a", opts...)
				say(err)
				for range 3 {
					_, _, err = c.Get(r.Within(time.Minute), "/none")
					say(err)
					say(c.AddAuth(r.Within(time.Minute), "digest", "v:"+word))
					say(c.AddAuth(r.Within(time.Minute), "nosuch", "v:"+word))
					say(c.AddAuth(r.Within(time.Minute), "digest", word))
					say(c.ReplaceAuth(r.Within(time.Minute), "digest", "w:"+word))
				}
				for change := range c.States(r.Within(time.Nanosecond)) {
					say(change)
				}
				_ = c.Close()
				synctest.Wait()
				for _, s := range append(said, log.String()) {
					if strings.Contains(s, word) {
						t.Errorf("%s: %s", name, s)
					}
				}
			}, zktest.WithSASLUser("docent", server))
		}
	}
}

// A session that stands when its password is changed on the servers ends by its time. Then there
// is no storm of sessions, and the right password lets the client in.
func TestLoginRefusedForTenMinutes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		password := "s3cret"
		c := r.Connect("a", client.WithSASL(client.DigestMD5From(func(context.Context) (string, string, error) { return "docent", password, nil })))
		s := r.Session(c)
		_, err := c.Create(r.Ctx, "/e", nil, client.Ephemeral())
		r.Check(err)
		password = "wrong"
		r.Srv.CutAll()
		begun := r.Srv.Count(zktest.OpConnect)
		time.Sleep(10 * time.Minute)
		if n := r.Srv.Count(zktest.OpConnect) - begun; n > 60*10*2 {
			t.Errorf("%d connections in 10 min", n)
		}
		t.Logf("%d connections, %d sessions", r.Srv.Count(zktest.OpConnect)-begun, len(r.Srv.Sessions()))
		if n := len(r.Srv.Sessions()); n > 6 {
			t.Errorf("%d sessions", n)
		}
		_, _, err = c.Get(r.Within(time.Minute), "/e")
		testrig.WantErr(t, err, client.ErrAuthFailed)
		password = "s3cret"
		_, _, err = c.Get(r.Ctx, "/e")
		for errors.Is(err, client.ErrAuthFailed) {
			time.Sleep(time.Second)
			_, _, err = c.Get(r.Ctx, "/e")
		}
		testrig.WantErr(t, err, zk.ErrNoNode)
		if s.Err() == nil {
			t.Error("the session stands")
		}
	}, zktest.WithSASLUser("docent", "s3cret"), zktest.WithRequiredAuth())
}
