package docs_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// hour is the server and the clients of a newcomer's first hour, in virtual time.
type hour struct {
	*testing.T
	srv *zktest.Server
	ctx context.Context
}

// open connects to where, as a client of the given name.
func (h *hour) open(where, name string, opts ...client.Option) (*client.Client, error) {
	c, err := client.Connect(h.ctx, where, append([]client.Option{
		client.WithDialer(h.srv.Client(name).DialContext),
		client.WithSessionTimeout(4 * time.Second),
		client.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	if err == nil {
		h.Cleanup(func() { _ = c.CloseContext(context.WithoutCancel(h.ctx)) })
	}
	return c, err
}

func (h *hour) client(name string, opts ...client.Option) *client.Client {
	h.Helper()
	c, err := h.open("zk1:2181", name, opts...)
	h.check(err)
	return c
}

func (h *hour) mutex(c *client.Client) *recipes.InterProcessMutex {
	h.Helper()
	m, err := recipes.NewInterProcessMutex(c, "/locks/orders")
	h.check(err)
	return m
}

func (h *hour) hold(c *client.Client) *recipes.Hold {
	h.Helper()
	hold, err := h.mutex(c).Acquire(h.ctx)
	h.check(err)
	return hold
}

// lost waits until a hold has ended, and says why.
func (h *hour) lost(hold *recipes.Hold) error {
	<-hold.Context().Done()
	return hold.Err()
}

func (h *hour) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(h.ctx, d)
	h.Cleanup(cancel)
	return ctx
}

func (h *hour) check(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// secret makes /locks a node of the user admin.
func (h *hour) secret() {
	c := h.client("admin", client.WithAuth("digest", "admin:hunter2"))
	_, err := c.Create(h.ctx, "/locks", nil, client.ACL(zk.AuthACL(zk.PermAll)...))
	h.check(err)
}

// peer is the dialer to another service, which answers the first bytes with a text.
func peer(answer string) client.Option {
	return client.WithDialer(func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			_, _ = far.Read(make([]byte, 1<<16))
			_, _ = far.Write([]byte(answer))
			_ = far.Close()
		}()
		return near, nil
	})
}

// connecting is the error of a Connect.
func connecting(where string, opts ...client.Option) func(*hour) error {
	return func(h *hour) error {
		_, err := h.open(where, "a", opts...)
		return err
	}
}

// disturbed is the error of a Connect to a server that a fault befell.
func disturbed(fault func(*hour)) func(*hour) error {
	return func(h *hour) error {
		fault(h)
		return connecting("zk1:2181")(h)
	}
}

var encrypted = client.WithTLS(&tls.Config{MinVersion: tls.VersionTLS12})

// mistake is an error that is made on purpose. In its text an asterisk stands for what
// differs from run to run: ids, times, numbers of processes.
type mistake struct {
	name string
	run  func(*hour) error
	want string
}

// test makes the mistake and looks at what is said about it.
func (m mistake) test(t *testing.T) {
	t.Helper()
	t.Run(m.name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			h := &hour{t, zktest.NewServer(t, zktest.WithLatency(50*time.Microsecond, time.Millisecond)), ctx}
			err := m.run(h)
			pattern := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(m.want), `\*`, `.+`) + "$"
			if text := fmt.Sprint(err); !regexp.MustCompile(pattern).MatchString(text) {
				t.Errorf("error %s\nwant  %s", text, m.want)
			}
		})
	})
}

// firstHour has the errors that a newcomer meets in the first hour.
var firstHour = []mistake{
	{"nothing listens", disturbed(func(h *hour) { h.srv.Refuse() }), "client: connect: not connected: no session within 4s: zk1:2181: dial zktest zktest: connect: connection refused (nothing listens there: is ZooKeeper running, is the port right?)"},
	{"unknown name", connecting("zk1:2181", client.WithDialer(func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "zk1", IsNotFound: true}}
	})), "client: connect: not connected: no session within 4s: zk1:2181: dial tcp: lookup zk1: no such host (no such name: check the connect string)"},
	{"packets are dropped", disturbed(func(h *hour) { h.srv.Partition() }), "client: connect: not connected: no session within 4s: zk1:2181: dial zktest zktest: context deadline exceeded (no answer: is the host up, does a firewall drop the packets?)"},
	{"HTTP", connecting("zk1:8080", peer("HTTP/1.1 400 Bad Request\r\n\r\n")), `client: connect: not connected: no session within 4s: zk1:8080: this is not ZooKeeper's protocol: the answer to the handshake begins with "HTTP/1.1 400 Bad Request" (answers like an HTTP server: not a ZooKeeper client port, check the connect string)`},
	{"SSH", connecting("zk1:22", peer("SSH-2.0-OpenSSH_9.2\r\n")), `client: connect: not connected: no session within 4s: zk1:22: this is not ZooKeeper's protocol: the answer to the handshake begins with "SSH-2.0-OpenSSH_9.2" (answers like an SSH server: not a ZooKeeper client port, check the connect string)`},
	{"silent", disturbed(func(h *hour) { h.srv.Freeze() }), "client: connect: not connected: no session within 4s: zk1:2181: i/o timeout (no answer to the handshake: is that the client port of a ZooKeeper, is the server alive?)"},
	{"plain to TLS", connecting("zk1:2281", peer("")), "client: connect: not connected: no session within 4s: zk1:2281: the server closed the connection in the handshake: EOF (no quorum, a read-only server, too many connections from this host (maxClientCnxns), a throttle (connection_throttle_tokens), a server with less data than this client has seen (restored, or started empty), or a TLS port: WithTLS?)"},
	{"TLS to plain", connecting("zk1:2181", encrypted, peer("")), "client: connect: not connected: no session within 4s: zk1:2181: tls: EOF (the server closed the connection in the TLS handshake: use its secureClientPort, or drop WithTLS)"},
	{"TLS to HTTP", connecting("zk1:8080", encrypted, peer("HTTP/1.1 400 Bad Request\r\n\r\n")), "client: connect: not connected: no session within 4s: zk1:8080: tls: first record does not look like a TLS handshake (the port does not speak TLS: use the server's secureClientPort, or drop WithTLS)"},
	{"too many connections", disturbed(func(h *hour) { h.client("a"); h.srv.SetMaxConns(1) }), "client: connect: not connected: no session within 4s: zk1:2181: the server closed the connection in the handshake: EOF (no quorum, a read-only server, too many connections from this host (maxClientCnxns), a throttle (connection_throttle_tokens), a server with less data than this client has seen (restored, or started empty), or a TLS port: WithTLS?)"},
	{"chroot", connecting("zk1:2181/nope"), `client: chroot does not exist: "/nope"; create it first, or use WithNamespace, which creates what is missing`},
	{"chroot behind each server", connecting("zk1:2181/app,zk2:2181/app"), `client: chroot does not exist: "/app,zk2:2181/app"; a chroot is written once, behind the last server: "host:port,host:port/chroot"`},
	{"chroot without a name", connecting("zk1:2181//"), `client: invalid connect string "zk1:2181//": the chroot has no name between its slashes; leave them out, or write one like "/app"`},
	{"semicolons", connecting("zk1;zk2"), `client: invalid connect string "zk1;zk2": server 1: servers are separated by commas, not semicolons`},
	{"scheme", connecting("http://zk1"), `client: invalid connect string "http://zk1": it has a scheme (what stands before ://), which ZooKeeper does not use; leave it out, and pass WithTLS for an encrypted connection`},
	{"no servers", connecting(""), `client: invalid connect string "": it is empty; expected "host:port,host:port/chroot"`},
	{"port", connecting("zk1:http"), `client: invalid connect string "zk1:http": server 1: the port is not a number from 1 to 65535`},
	{"unit of the timeout", connecting("zk1:2181", client.WithSessionTimeout(15000)), "client: session timeout 15µs is too short for this client, which gives a dial and a handshake a third of it: ask for 100ms or more, as in 15*time.Second; servers grant 2 to 20 ticks, by default 4s to 40s"},
	{"digest without a colon", connecting("zk1:2181", client.WithAuth("digest", "hunter2")), `client: WithAuth: the credentials of scheme digest are "user:password"; without a colon the password would stand in every ACL`},
	{"unknown scheme of credentials", connecting("zk1:2181", client.WithAuth("kerberos", "app:hunter2")), "client: connect: exists /: session lost: session 0x*: authentication failed: scheme kerberos (the servers refuse what client.WithAuth gave: they do not know its scheme, or do not take these credentials)"},
	{"no credentials", func(h *hour) error {
		h.secret()
		_, err := h.mutex(h.client("a")).Acquire(h.ctx)
		return err
	}, "recipes: acquire /locks/orders: client: create /locks/orders/lock-: make parent /locks/orders: zk: not authenticated (the ACL of the node or of its parent does not allow it, and this client presents no credentials: pass them with client.WithAuth or client.WithSASL, or have the ACL changed)"},
	{"wrong password", func(h *hour) error {
		h.secret()
		_, err := h.mutex(h.client("a", client.WithAuth("digest", "admin:hunter3"))).Acquire(h.ctx)
		return err
	}, `recipes: acquire /locks/orders: client: create /locks/orders/lock-: make parent /locks/orders: zk: not authenticated (the ACL of the node or of its parent does not allow it to digest user "admin"; a wrong password looks the same, because a server takes it for another identity: check client.WithAuth, or have the ACL changed)`},
	{"relative path", func(h *hour) error {
		_, err := recipes.NewInterProcessMutex(h.client("a"), "locks/orders")
		return err
	}, `recipes: lock path: zk: invalid path "locks/orders": it is relative; a path starts with "/", like "/locks/orders"`},
	{"path of a directory", func(h *hour) error {
		_, err := recipes.NewInterProcessMutex(h.client("a"), "/locks/orders/")
		return err
	}, `recipes: lock path: zk: invalid path "/locks/orders/": it ends with "/"; write "/locks/orders"`},
	{"no parent", func(h *hour) error {
		_, err := h.client("a").Create(h.ctx, "/config/shop", nil)
		return err
	}, "client: create /config/shop: zk: node does not exist (the parent: make it first, or pass client.WithParents)"},
	{"no node", func(h *hour) error {
		_, _, err := h.client("a").Get(h.ctx, "/config/shop")
		return err
	}, "client: get /config/shop: zk: node does not exist"},
	{"too much data", func(h *hour) error {
		_, err := h.client("a").Create(h.ctx, "/large", make([]byte, 2<<20))
		return err
	}, "client: create /large: frame too large: request of 2097205 bytes, limit 1048575 (raise jute.maxbuffer on the servers and client.WithMaxRequest here, or store less)"},
	{"servers with a smaller limit", func(h *hour) error {
		h.srv.DropBefore(zktest.Match{Op: zktest.OpCreate, Path: "/large"})
		_, err := h.client("a").Create(h.ctx, "/large", make([]byte, 8000))
		return err
	}, "client: create /large: read: EOF (a request of 8053 bytes was under way: the servers' jute.maxbuffer may be less) (outcome unknown)"},
	{"no server, deadline", func(h *hour) error {
		m := h.mutex(h.client("a"))
		h.srv.Refuse()
		h.srv.CutAll()
		_, err := m.Acquire(h.within(time.Second))
		return err
	}, "recipes: acquire /locks/orders: client: create /locks/orders/lock-: retry: stopped after 2 tries: client: not connected: context deadline exceeded: zk1:2181: dial zktest zktest: connect: connection refused (nothing listens there: is ZooKeeper running, is the port right?); last error: read: EOF (outcome unknown)"},
	{"no server, policy", func(h *hour) error {
		c := h.client("a", client.WithRetry(retry.NTimes(2, time.Second)))
		h.srv.Refuse()
		h.srv.CutAll()
		time.Sleep(time.Second)
		_, _, err := c.Get(h.ctx, "/")
		return err
	}, "client: get /: not connected for longer than the retry policy NTimes(2, 1s).WithCap(*) allows: zk1:2181: dial zktest zktest: connect: connection refused (nothing listens there: is ZooKeeper running, is the port right?)"},
	{"taken", func(h *hour) error {
		h.hold(h.client("a", client.WithName("billing")))
		_, err := h.mutex(h.client("b")).TryAcquire(h.ctx)
		return err
	}, "recipes: try to acquire /locks/orders: not free: holder /locks/orders/_c_*-lock-0000000000, session 0x*, queued since 2000-01-01T00:00:00Z, exclusive by Docent, ? pid=* host=* client=billing"},
	{"waited", func(h *hour) error {
		h.hold(h.client("a", client.WithName("billing")))
		_, err := h.mutex(h.client("b")).Acquire(h.within(time.Second))
		return err
	}, "recipes: acquire /locks/orders: waiting behind holder /locks/orders/_c_*-lock-0000000000, session 0x*, queued since 2000-01-01T00:00:00Z, exclusive by Docent, ? pid=* host=* client=billing: context deadline exceeded"},
	{"never released", func(h *hour) error {
		c := h.client("a")
		h.hold(c)
		_, err := h.mutex(c).Acquire(h.within(time.Second))
		return err
	}, "recipes: acquire /locks/orders: waiting behind holder /locks/orders/_c_*-lock-0000000000, session 0x*, queued since 2000-01-01T00:00:00Z, exclusive by Docent, of this same client (if that hold is the caller's, pass its context to the acquire): context deadline exceeded"},
	{"upgrade", func(h *hour) error {
		rw, err := recipes.NewInterProcessReadWriteLock(h.client("a"), "/locks/stock")
		h.check(err)
		hold, err := rw.ReadLock().Acquire(h.ctx)
		h.check(err)
		_, err = rw.WriteLock().Acquire(hold.Context())
		return err
	}, "recipes: acquire /locks/stock: would wait for itself: a read hold is not upgraded: release it first (/locks/stock/_c_*-__READ__0000000000)"},
	{"too many permits", func(h *hour) error {
		s, err := recipes.NewInterProcessSemaphoreV2(h.client("a"), "/pools/db", 5)
		h.check(err)
		_, err = s.Acquire(h.ctx, 6)
		return err
	}, "recipes: acquire /pools/db: more permits than the semaphore has: asked for 6 of 5"},
	{"two recipes on a path", func(h *hour) error {
		c := h.client("a")
		h.hold(c)
		rw, err := recipes.NewInterProcessReadWriteLock(c, "/locks/orders")
		h.check(err)
		_, err = rw.WriteLock().Acquire(h.ctx)
		return err
	}, "recipes: acquire /locks/orders: another recipe or library has a lock in this directory, and the two would not wait for each other: /locks/orders/_c_*-lock-0000000000 belongs to a mutex of Docent: give each a path of its own"},
	{"context of a released hold", func(h *hour) error {
		c := h.client("a")
		hold := h.hold(c)
		h.check(hold.Release(h.ctx))
		_, err := h.mutex(c).Acquire(hold.Context())
		return err
	}, "recipes: acquire /locks/orders: the context had ended before, with a hold that is released: context canceled: lock released"},
	{"write after the release", func(h *hour) error {
		hold := h.hold(h.client("a"))
		h.check(errors.Join(hold.Release(h.ctx), hold.Release(h.ctx), hold.Close()))
		_, err := hold.Guard(h.ctx, client.SetOp("/orders", nil, client.AnyVersion))
		return err
	}, "recipes: guard /locks/orders: lock released"},
	{"closed while held", func(h *hour) error {
		c := h.client("a")
		hold := h.hold(c)
		h.check(c.CloseContext(h.ctx))
		return h.lost(hold)
	}, "lock lost: /locks/orders: client: the client was closed"},
	{"closed while waiting", func(h *hour) error {
		h.hold(h.client("a", client.WithName("billing")))
		b := h.client("b")
		m, ended := h.mutex(b), make(chan error, 1)
		go func() { _, err := m.Acquire(h.ctx); ended <- err }()
		synctest.Wait()
		time.Sleep(time.Second)
		h.check(b.CloseContext(h.ctx))
		return <-ended
	}, "recipes: acquire /locks/orders: waiting behind holder /locks/orders/_c_*-lock-0000000000, session 0x*, queued since 2000-01-01T00:00:00Z, exclusive by Docent, ? pid=* host=* client=billing: client: the client was closed"},
	{"deleted by an operator", func(h *hour) error {
		hold := h.hold(h.client("a"))
		h.check(h.srv.Delete(hold.Path()))
		return h.lost(hold)
	}, "lock lost: /locks/orders: its node was deleted by another client"},
	{"session expired", func(h *hour) error {
		hold := h.hold(h.client("a"))
		h.srv.Client("a").ExpireSession()
		return h.lost(hold)
	}, "lock lost: /locks/orders: client: session lost: session 0x*: the server refused the session, which has expired there"},
	{"session expired while waiting", func(h *hour) error {
		h.hold(h.client("a", client.WithName("billing")))
		m, ended := h.mutex(h.client("b")), make(chan error, 1)
		go func() { _, err := m.Acquire(h.ctx); ended <- err }()
		synctest.Wait()
		time.Sleep(time.Second)
		h.srv.Client("b").ExpireSession()
		return <-ended
	}, "recipes: acquire /locks/orders: waiting behind holder /locks/orders/*, session 0x*, queued since *, exclusive by Docent, * client=billing: client: session lost: session 0x*: the server refused the session, which has expired there"},
	{"partition", func(h *hour) error {
		hold := h.hold(h.client("a"))
		h.srv.Client("a").Partition()
		err := h.lost(hold)
		h.srv.Client("a").Heal()
		return err
	}, "lock lost: /locks/orders: client: lease expired: session 0x* (timeout 4s) was last proved by a committed write sent at *; its nodes are safe until *, and the margin is 1s: client: not connected: zk1:2181: a heartbeat was not answered in time"},
	{"Do, lost", func(h *hour) error {
		return h.mutex(h.client("a")).Do(h.ctx, func(ctx context.Context, _ *recipes.Hold) error {
			h.srv.Client("a").ExpireSession()
			<-ctx.Done()
			return ctx.Err()
		})
	}, "recipes: release /locks/orders: lock lost: client: session lost: session 0x*: the server refused the session, which has expired there; the function returned: context canceled"},
	{"shorter timeout", func(h *hour) error {
		h.srv.SetSessionTimeouts(4*time.Second, 40*time.Second) // the defaults of a server with a tick of 2 s
		var log bytes.Buffer
		h.client("a", client.WithSessionTimeout(time.Hour), client.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		synctest.Wait()
		return errors.New(firstLine(log.String(), "WARN"))
	}, `time=* level=WARN msg="zookeeper: a server has granted a shorter session timeout than was asked for; leases and holds end that much sooner" server=zk1:2181 timeout=40s asked=1h0m0s remedy="raise maxSessionTimeout on the servers, or ask for less with client.WithSessionTimeout"`},
	{"nil context", func(h *hour) (err error) {
		defer func() { err = fmt.Errorf("panic: %v", recover()) }()
		var none context.Context
		_, _ = h.mutex(h.client("a")).Acquire(none)
		return nil
	}, "panic: docent: the context is nil; pass that of the caller, or context.Background() to wait without an end"},
	{"member 0", func(h *hour) (err error) {
		defer func() { err = fmt.Errorf("panic: %v", recover()) }()
		zktest.NewEnsemble(h.T, 3).Server(0)
		return nil
	}, "panic: zktest: the ensemble has no member 0: its members are numbered from 1 to 3"},
}

// firstLine is the first line of a log that has a text.
func firstLine(log, text string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func TestFirstHour(t *testing.T) {
	t.Parallel()
	for _, m := range firstHour {
		m.test(t)
	}
}
