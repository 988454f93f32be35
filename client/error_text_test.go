package client_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// answering is the dialer to a peer that takes the first write, answers it with
// a text and closes the connection.
func answering(text string) client.Option {
	return client.WithDialer(func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			_, _ = far.Read(make([]byte, 1<<16))
			_, _ = far.Write([]byte(text))
			_ = far.Close()
		}()
		return near, nil
	})
}

// failing is a dialer that fails.
func failing(err error) client.Option {
	return client.WithDialer(func(context.Context, string, string) (net.Conn, error) { return nil, err })
}

// What keeps a Connect from its end is said with the cause and with what to do.
func TestConnectErrorTexts(t *testing.T) {
	t.Parallel()
	const notOurs = "not a ZooKeeper client port, check the connect string"
	secret := client.WithAuth("digest", "app:hunter2")
	for name, tt := range map[string]struct {
		connectString string // "zk1:2181" by default
		opts          []client.Option
		fault         func(*rig)
		cause, remedy string
	}{
		"no server listens": {
			fault: func(r *rig) { r.Srv.Refuse() },
			cause: "connection refused", remedy: "nothing listens there: is ZooKeeper running, is the port right?",
		},
		"no such name": {
			opts:  []client.Option{failing(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "zk1", IsNotFound: true}})},
			cause: "no such host", remedy: "no such name: check the connect string",
		},
		"host does not answer": {
			fault: func(r *rig) { r.Srv.Partition() },
			cause: "context deadline exceeded", remedy: "is the host up, does a firewall drop the packets?",
		},
		"HTTP":           {opts: []client.Option{answering("HTTP/1.1 400 Bad Request\r\n\r\n")}, cause: `begins with "HTTP/1.1 400 Bad Request"`, remedy: "answers like an HTTP server: " + notOurs},
		"SSH":            {opts: []client.Option{answering("SSH-2.0-OpenSSH_9.2\r\n")}, cause: `begins with "SSH-2.0-OpenSSH_9.2"`, remedy: "answers like an SSH server: " + notOurs},
		"Redis":          {opts: []client.Option{answering("-ERR unknown command\r\n")}, cause: `begins with "-ERR unknown command"`, remedy: "answers with text: " + notOurs},
		"other bytes":    {opts: []client.Option{answering("\x4a\x00\x00\x00\x0a8.0\x00")}, cause: "handshake of 1241513984 bytes", remedy: "answers in another protocol: " + notOurs},
		"TLS alert":      {opts: []client.Option{answering("\x15\x03\x03\x00\x02\x02\x0a")}, cause: "a TLS record", remedy: "answers in TLS: use WithTLS"},
		"closed at once": {opts: []client.Option{answering("")}, cause: "closed the connection in the handshake: EOF", remedy: "no quorum, a read-only server, too many connections from this host (maxClientCnxns), a throttle (connection_throttle_tokens), a server with less data than this client has seen (restored, or started empty), or a TLS port: WithTLS?"},
		"closed within":  {opts: []client.Option{answering("\x00\x00\x00\x25\x00")}, cause: "closed the connection in the handshake: unexpected EOF", remedy: "maxClientCnxns"},
		"maxClientCnxns": {
			fault: func(r *rig) { r.Connect("a"); r.Srv.SetMaxConns(1) },
			cause: "closed the connection in the handshake", remedy: "too many connections from this host (maxClientCnxns)",
		},
		"silent": {
			fault: func(r *rig) { r.Srv.Freeze() },
			cause: "i/o timeout", remedy: "is that the client port of a ZooKeeper, is the server alive?",
		},
		"silent, and the time is up": {
			opts:  []client.Option{client.WithConnectTimeout(time.Second)},
			fault: func(r *rig) { r.Srv.Freeze() },
			cause: "no session within 1s: zk1:2181: no answer yet", remedy: "is that the client port of a ZooKeeper?",
		},
		"TLS to a plain port": {
			opts:  []client.Option{client.WithTLS(&tls.Config{MinVersion: tls.VersionTLS12}), answering("")},
			cause: "tls: EOF", remedy: "the server closed the connection in the TLS handshake: use its secureClientPort, or drop WithTLS",
		},
		"TLS to HTTP": {
			opts:  []client.Option{client.WithTLS(&tls.Config{MinVersion: tls.VersionTLS12}), answering("HTTP/1.1 400 Bad Request\r\n\r\n")},
			cause: "first record does not look like a TLS handshake", remedy: "the port does not speak TLS: use the server's secureClientPort, or drop WithTLS",
		},
		"chroot":                     {connectString: "zk1/nope", cause: "chroot does not exist: \"/nope\"", remedy: "create it first, or use WithNamespace, which creates what is missing"},
		"chroot behind every server": {connectString: "zk1/app,zk2/app", cause: "chroot does not exist", remedy: `a chroot is written once, behind the last server: "host:port,host:port/chroot"`},
		"chroot of slashes":          {connectString: "zk1:2181//", cause: "no name between its slashes", remedy: `leave them out, or write one like "/app"`},
		"semicolons":                 {connectString: "zk1;zk2", cause: "not semicolons", remedy: "servers are separated by commas"},
		"scheme":                     {connectString: "http://zk1", cause: "it has a scheme (what stands before ://), which ZooKeeper does not use", remedy: "leave it out, and pass WithTLS for an encrypted connection"},
		"user name":                  {connectString: "app:hunter2@zk1", cause: "no user name", remedy: "credentials are given with WithAuth"},
		"port":                       {connectString: "zk1:0", cause: "server 1: the port is not a number", remedy: "from 1 to 65535"},
		"session timeout of 0":       {opts: []client.Option{client.WithSessionTimeout(0)}, cause: "session timeout 0s is too short for this client", remedy: "ask for 100ms or more"},
		"session timeout, 1 ms":      {opts: []client.Option{client.WithSessionTimeout(time.Millisecond)}, cause: "session timeout 1ms is too short for this client", remedy: "ask for 100ms or more"},
		"digest without a colon":     {opts: []client.Option{client.WithAuth("digest", "hunter2")}, cause: "without a colon", remedy: `the credentials of scheme digest are "user:password"`},
		"unknown scheme":             {opts: []client.Option{client.WithAuth("nonsense", "app:hunter2")}, cause: "authentication failed: scheme nonsense", remedy: "they do not know its scheme, or do not take these credentials"},
		"credentials are not shown":  {opts: []client.Option{secret}, fault: func(r *rig) { r.Srv.Refuse() }, cause: "connection refused", remedy: "is ZooKeeper running"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				if tt.fault != nil {
					tt.fault(r)
				}
				where := tt.connectString
				if where == "" {
					where = "zk1:2181"
				}
				_, err := r.Open(where, "a", tt.opts...)
				text := fmt.Sprint(err)
				if !strings.HasPrefix(text, "client: ") || !strings.Contains(text, tt.cause) || !strings.Contains(text, tt.remedy) {
					t.Errorf("error %q\nwant %q and %q", text, tt.cause, tt.remedy)
				}
				if strings.Contains(text, "hunter2") || strings.Contains(text, "wire:") || len(text) > 400 {
					t.Errorf("error %q shows a secret, an internal name, or is too long", text)
				}
			})
		})
	}
}

// What an operation is refused with says what to do.
func TestOperationErrorTexts(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		admin := r.Connect("admin", client.WithAuth("digest", "admin:hunter2"))
		_, err := admin.Create(r.Ctx, "/closed", nil, client.ACL(zk.AuthACL(zk.PermAll)...))
		r.Check(err)
		plain := r.Connect("plain")
		_, err = plain.Create(r.Ctx, "/mortal", nil, client.Ephemeral())
		r.Check(err)
		wrong := r.Connect("wrong", client.WithAuth("digest", "admin:hunter3"))
		many := r.Connect("many", client.WithAuth("digest", "a:1"), client.WithAuth("ip", "hunter4"), client.WithAuth("digest", "c:3"),
			client.WithAuth("digest", "d:4"), client.WithAuth("digest", "e:5"), client.WithAuth("digest", "f:6"))
		late, cancel := context.WithTimeout(r.Ctx, time.Second)
		defer cancel()
		for name, tt := range map[string]struct {
			err           error
			cause, remedy string
		}{
			"no credentials":    {second(plain.Set(r.Ctx, "/closed", nil, -1)), "not authenticated", "this client presents no credentials: pass them with client.WithAuth or client.WithSASL, or have the ACL changed"},
			"wrong password":    {second(wrong.Set(r.Ctx, "/closed", nil, -1)), `does not allow it to digest user "admin"`, "a wrong password looks the same, because a server takes it for another identity: check client.WithAuth"},
			"create":            {second(wrong.Create(r.Ctx, "/closed/a", nil)), `digest user "admin"`, "have the ACL changed"},
			"many identities":   {second(many.Set(r.Ctx, "/closed", nil, -1)), `digest user "a", scheme ip, digest user "c", digest user "d", digest user "e", and 1 more`, "check client.WithAuth"},
			"multi":             {second(wrong.Multi(r.Ctx, client.SetOp("/closed", nil, -1))), `digest user "admin"`, "check client.WithAuth"},
			"relative, a slash": {second(plain.Create(r.Ctx, "config/", nil)), `invalid path "config/": it is relative`, `a path starts with "/", like "/config"`},
			"relative path":     {second(plain.Create(r.Ctx, "locks/orders", nil)), `invalid path "locks/orders": it is relative`, `a path starts with "/", like "/locks/orders"`},
			"missing parent":    {second(plain.Create(r.Ctx, "/no/such", nil)), "node does not exist", "the parent: make it first, or pass client.WithParents"},
			"ephemeral parent":  {second(plain.Create(r.Ctx, "/mortal/a", nil)), "ephemeral nodes may not have children", "the parent is such a node: take a path that is not below it"},
			"too large":         {second(plain.Create(r.Ctx, "/large", make([]byte, 2<<20))), "frame too large", "raise jute.maxbuffer on the servers and client.WithMaxRequest here, or store less"},
			"TTL, not allowed":  {second(plain.Create(r.Ctx, "/ttl", nil, client.TTL(time.Hour))), "not supported by these servers: TTL nodes", "(Apache ZooKeeper 3.5.3 or later with extendedTypesEnabled=true)"},
			"no server in time": {func() error { r.Srv.Refuse(); r.Srv.CutAll(); return second(plain.Set(late, "/closed", nil, -1)) }(), "not connected: context deadline exceeded", "is ZooKeeper running, is the port right?"},
			"no session either": {second(plain.Session(late)), "not connected: context deadline exceeded", "is ZooKeeper running, is the port right?"},
		} {
			text := fmt.Sprint(tt.err)
			if !strings.HasPrefix(text, "client: ") || !strings.Contains(text, tt.cause) || strings.Count(text, tt.remedy) != 1 {
				t.Errorf("%s: error %q\nwant %q and, once, %q", name, text, tt.cause, tt.remedy)
			}
			if strings.Contains(text, "hunter") {
				t.Errorf("%s: error %q shows a secret", name, text)
			}
		}
	})
}

// What a session's states say of its connection and of its end names no package
// that users cannot see.
func TestStateErrorTexts(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		lost := make(chan []client.StateChange)
		go func() {
			var seen []client.StateChange
			for ch := range c.States(r.Ctx) {
				seen = append(seen, ch)
				if ch.State == client.Lost {
					break
				}
			}
			lost <- seen
		}()
		synctest.Wait()
		r.Srv.Client("a").Cut()
		_, _, err := c.Children(r.Ctx, "/")
		r.Check(err)
		r.Srv.Client("a").Freeze()
		r.Srv.ExpireSession(s.ID())
		r.Srv.Client("a").Cut()
		r.Srv.Client("a").Thaw()
		texts := map[client.State][]string{}
		for _, ch := range <-lost {
			texts[ch.State] = append(texts[ch.State], fmt.Sprint(ch.Err))
		}
		for state, want := range map[client.State]string{client.Suspended: "read: ", client.Lost: "the server refused the session, which has expired there"} {
			text := strings.Join(texts[state], "; ")
			if !strings.Contains(text, want) || strings.Contains(text, "wire") {
				t.Errorf("%v: error %q, want %q", state, text, want)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// A nil context is refused where it is passed, and says what to pass.
func TestNilContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		s := r.Session(c)
		var none context.Context
		for name, f := range map[string]func(){
			"Connect": func() { _, _ = client.Connect(none, "zk") },
			"Get":     func() { _, _, _ = c.Get(none, "/") },
			"Session": func() { _, _ = c.Session(none) },
			"bound":   func() { _, _, _ = s.Get(none, "/") },
			"Close":   func() { _ = c.CloseContext(none) },
		} {
			func() {
				defer func() {
					if text := fmt.Sprint(recover()); !strings.Contains(text, "the context is nil; pass that of the caller") {
						t.Errorf("%s: panics with %q", name, text)
					}
				}()
				f()
			}()
		}
		_, _, err := c.Get(r.Ctx, "/")
		r.Check(err)
	})
}
