package zkconn_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/client/zkconn"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// zkConn is what both connections have, as code that takes an interface would write it.
type zkConn interface {
	AddAuth(scheme string, auth []byte) error
	Children(path string) ([]string, *zk.Stat, error)
	ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error)
	Close()
	Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	CreateContainer(path string, data []byte, flag int32, acl []zk.ACL) (string, error)
	CreateProtectedEphemeralSequential(path string, data []byte, acl []zk.ACL) (string, error)
	CreateTTL(path string, data []byte, flag int32, acl []zk.ACL, ttl time.Duration) (string, error)
	Delete(path string, version int32) error
	Exists(path string) (bool, *zk.Stat, error)
	ExistsW(path string) (bool, *zk.Stat, <-chan zk.Event, error)
	Get(path string) ([]byte, *zk.Stat, error)
	GetACL(path string) ([]zk.ACL, *zk.Stat, error)
	GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error)
	IncrementalReconfig(joining, leaving []string, version int64) (*zk.Stat, error)
	Multi(ops ...any) ([]zk.MultiResponse, error)
	Reconfig(members []string, version int64) (*zk.Stat, error)
	Server() string
	SessionID() int64
	Set(path string, data []byte, version int32) (*zk.Stat, error)
	SetACL(path string, acl []zk.ACL, version int32) (*zk.Stat, error)
	SetLogger(l zk.Logger)
	State() zk.State
	Sync(path string) (string, error)
}

var (
	_ zkConn = (*zk.Conn)(nil)
	_ zkConn = (*zkconn.Conn)(nil)
)

// Conn has every method of zk.Conn, also those of a later release.
func TestMethods(t *testing.T) {
	t.Parallel()
	theirs, ours := reflect.TypeFor[*zk.Conn](), reflect.TypeFor[*zkconn.Conn]()
	for i := range theirs.NumMethod() {
		m := theirs.Method(i)
		if _, has := ours.MethodByName(m.Name); !has {
			t.Errorf("there is no %s", m.Name)
		}
		if _, has := reflect.TypeFor[zkConn]().MethodByName(m.Name); !has {
			t.Errorf("%s is not compared", m.Name)
		}
	}
}

// dial connects go-zookeeper itself.
func dial(r *testrig.Rig, name string) (*zk.Conn, <-chan zk.Event) {
	r.Helper()
	link := r.Srv.Client(name)
	conn, events, err := zk.Connect(link.Servers(), testrig.SessionTimeout,
		zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
	r.Check(err)
	r.Cleanup(conn.Close)
	return conn, events
}

// both plays a script on go-zookeeper's own connection and on Conn, each with a server of its
// own. It fails if the transcripts differ.
func both(t *testing.T, script func(r *testrig.Rig, conn zkConn, events <-chan zk.Event, say func(...any)), opts ...zktest.Option) {
	t.Helper()
	var said [2][]string
	for i := range said {
		testrig.Bubble(t, func(r *testrig.Rig) {
			var conn zkConn
			var events <-chan zk.Event
			if i == 0 {
				conn, events = dial(r, "a")
			} else {
				ours, theirs := zkconn.New(r.Ctx, r.Connect("a"))
				r.Cleanup(ours.Close)
				conn, events = ours, theirs
			}
			time.Sleep(time.Second) // go-zookeeper connects meanwhile
			script(r, conn, events, func(what ...any) { said[i] = append(said[i], words(what)) })
		}, opts...)
	}
	if len(said[0]) == 0 {
		t.Fatal("nothing was said")
	}
	for i := range max(len(said[0]), len(said[1])) {
		if theirs, ours := line(said[0], i), line(said[1], i); theirs != ours {
			t.Errorf("line %d:\n go-zookeeper %s\n zkconn       %s", i+1, theirs, ours)
		}
	}
}

func line(of []string, i int) string {
	if i < len(of) {
		return of[i]
	}
	return "(nothing)"
}

var guid = regexp.MustCompile(`_c_[0-9a-f-]{32,36}-`)

// words is a transcript of what a call has returned. Of an error it says which value it is,
// so that a wrapped one does not pass for it.
func words(what []any) (s string) {
	values := map[error]string{
		zk.ErrNoNode: "ErrNoNode", zk.ErrNodeExists: "ErrNodeExists", zk.ErrBadVersion: "ErrBadVersion", zk.ErrNotEmpty: "ErrNotEmpty",
		zk.ErrNoAuth: "ErrNoAuth", zk.ErrInvalidACL: "ErrInvalidACL", zk.ErrNoChildrenForEphemerals: "ErrNoChildrenForEphemerals",
		zk.ErrInvalidPath: "ErrInvalidPath", zk.ErrSessionExpired: "ErrSessionExpired", zk.ErrConnectionClosed: "ErrConnectionClosed",
		zk.ErrClosing: "ErrClosing", zk.ErrNoServer: "ErrNoServer", zk.ErrAuthFailed: "ErrAuthFailed", zk.ErrBadArguments: "ErrBadArguments",
		zk.ErrReconfigDisabled: "ErrReconfigDisabled",
	}
	for _, w := range what {
		switch w := w.(type) {
		case nil:
			s += " nil"
		case error:
			switch name, known := values[w]; {
			case known:
				s += " " + name
			case errors.Is(w, zk.ErrInvalidFlags):
				s += " (ErrInvalidFlags) " + w.Error()
			default:
				s += " " + w.Error()
			}
		case *zk.Stat:
			if w == nil {
				s += " no stat"
				continue
			}
			s += fmt.Sprintf(" stat{v%d c%d a%d e%v l%d n%d}", w.Version, w.Cversion, w.Aversion, w.EphemeralOwner != 0, w.DataLength, w.NumChildren)
		case zk.Event:
			s += fmt.Sprintf(" event{%v %v %s%s}", w.Type, w.State, w.Path, words([]any{w.Err}))
		case []zk.MultiResponse:
			for _, r := range w {
				s += fmt.Sprintf(" {%s%s}", r.String, words([]any{r.Stat, r.Error}))
			}
			s += fmt.Sprint(" of ", len(w))
		case []string:
			slices.Sort(w)
			s += fmt.Sprintf(" %q", w)
		case []byte:
			s += fmt.Sprintf(" %q", w)
		case string:
			s += " " + guid.ReplaceAllString(w, "_c_GUID-")
		default:
			s += fmt.Sprintf(" %v", w)
		}
	}
	return s
}

var open = zk.WorldACL(zk.PermAll)

// Every call says the same as go-zookeeper's: results, stats and error values.
func TestSameAnswers(t *testing.T) {
	t.Parallel()
	both(t, func(r *testrig.Rig, c zkConn, _ <-chan zk.Event, say func(...any)) {
		one := func(name string) func(any, error) { return func(a any, err error) { say(name, a, err) } }
		say("state", c.State(), c.SessionID() != 0, c.Server() != "")
		create := one("create")
		made := func(path string, err error) { create(path, err) }
		made(c.Create("/d", []byte("x"), 0, open))
		made(c.Create("/d", nil, 0, open))
		made(c.Create("/d/e", nil, zk.FlagEphemeral, open))
		made(c.Create("/d/e/f", nil, 0, open))
		made(c.Create("/d/s-", nil, zk.FlagSequence, open))
		made(c.Create("/d/", nil, zk.FlagEphemeralSequential, open))
		made(c.Create("/no/parent", nil, 0, open))
		made(c.Create("/acl", nil, 0, nil))
		made(c.Create("bad", nil, 0, open))
		made(c.Create("/d/ttl", nil, zk.FlagTTL, open))
		made(c.Create("/d/what", nil, 99, open))
		made(c.CreateContainer("/c", nil, zk.FlagContainer, open))
		made(c.CreateContainer("/c2", nil, 0, open))
		made(c.CreateTTL("/t", nil, zk.FlagTTL, open, time.Hour))
		made(c.CreateTTL("/t-", nil, zk.FlagPersistentSequentialWithTTL, open, time.Hour))
		made(c.CreateTTL("/t2", nil, 0, open, time.Hour))
		made(c.CreateProtectedEphemeralSequential("/d/p-", nil, open))
		made(c.CreateProtectedEphemeralSequential("/no/p-", nil, open))

		data, stat, err := c.Get("/d")
		say("get", data, stat, err)
		data, stat, err = c.Get("/none")
		say("get", data, stat, err)
		data, stat, err = c.Get("bad")
		say("get", data, stat, err)
		found, stat, err := c.Exists("/d")
		say("exists", found, stat, err)
		found, stat, err = c.Exists("/none")
		say("exists", found, stat, err)
		names, stat, err := c.Children("/")
		say("children", names, stat, err)
		names, stat, err = c.Children("/none")
		say("children", names, stat, err)
		acl, stat, err := c.GetACL("/d")
		say("getACL", acl, stat, err)
		stat, err = c.Set("/d", []byte("yy"), 0)
		say("set", stat, err)
		stat, err = c.Set("/d", nil, 7)
		say("set", stat, err)
		stat, err = c.Set("/none", nil, -1)
		say("set", stat, err)
		stat, err = c.SetACL("/c", zk.WorldACL(zk.PermRead), 0)
		say("setACL", stat, err)
		stat, err = c.SetACL("/d", open, 9)
		say("setACL", stat, err)
		stat, err = c.SetACL("/d", nil, -1)
		say("setACL", stat, err)
		stat, err = c.Set("/c", nil, -1)
		say("set without rights", stat, err)
		say("delete", c.Delete("/d", -1), c.Delete("/none", -1), c.Delete("/t", 5), c.Delete("/t", 0), c.Delete("/", -1))
		path, err := c.Sync("/d")
		say("sync", path, err)

		multi := func(ops ...any) {
			all, err := c.Multi(ops...)
			say("multi", all, err)
		}
		multi(&zk.CheckVersionRequest{Path: "/d", Version: 1}, &zk.CreateRequest{Path: "/m-", Flags: zk.FlagSequence, Acl: open},
			&zk.SetDataRequest{Path: "/d", Data: []byte("zzz"), Version: -1}, &zk.DeleteRequest{Path: "/d/e", Version: -1})
		multi(&zk.SetDataRequest{Path: "/d", Version: -1}, &zk.CheckVersionRequest{Path: "/d", Version: 99}, &zk.DeleteRequest{Path: "/d", Version: -1})
		multi(&zk.CreateRequest{Path: "/d", Acl: open})
		multi(zk.CreateRequest{Path: "/d"})

		say("auth", c.AddAuth("digest", []byte("u:p")))
		made(c.Create("/mine", nil, 0, zk.AuthACL(zk.PermAll)))
		say("auth", c.AddAuth("nosuch", []byte("u:p")))
		time.Sleep(time.Second)
		data, stat, err = c.Get("/mine") // over another connection
		say("get", data, stat, err)
		_, err = c.IncrementalReconfig(nil, []string{"9"}, -1)
		say("reconfig", err)
		_, err = c.Reconfig([]string{"server.1=zk:1:2;3"}, -1)
		say("reconfig", err)
		c.SetLogger(r.Srv.Client("a").Logger())
	}, zktest.WithExtendedTypes())
}

// What happens to a watch is the same, through reconnections and lost sessions.
func TestSameEvents(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(r *testrig.Rig){
		"a change": func(r *testrig.Rig) {
			r.Check(r.Srv.SetData("/d", nil))
		},
		"a child": func(r *testrig.Rig) { r.Check(r.Srv.Create("/d/c", nil)) },
		"deleted": func(r *testrig.Rig) { r.Check(r.Srv.Delete("/d")) },
		"created": func(r *testrig.Rig) { r.Check(r.Srv.Create("/none", nil)) },
		"a reconnection without a change": func(r *testrig.Rig) {
			r.Srv.CutAll()
		},
		"two reconnections, then a change": func(r *testrig.Rig) {
			r.Srv.CutAll()
			time.Sleep(5 * time.Second)
			r.Srv.CutAll()
			time.Sleep(5 * time.Second)
			r.Check(r.Srv.SetData("/d", nil))
		},
		"changed during an outage": during(func(r *testrig.Rig) {
			r.Check(r.Srv.SetData("/d", nil))
			r.Check(r.Srv.Create("/none", nil))
		}),
		"a child during an outage": during(func(r *testrig.Rig) { r.Check(r.Srv.Create("/d/c", nil)) }),
		"deleted during an outage": during(func(r *testrig.Rig) { r.Check(r.Srv.Delete("/d")) }),
		"made again during an outage": during(func(r *testrig.Rig) {
			r.Check(r.Srv.Delete("/d"))
			r.Check(r.Srv.Create("/d", nil))
		}),
		"made and deleted during an outage": during(func(r *testrig.Rig) {
			r.Check(r.Srv.Create("/none", nil))
			r.Check(r.Srv.Delete("/none"))
		}),
		"an expired session": func(r *testrig.Rig) { r.Srv.Client("a").ExpireSession() },
		"an outage longer than the session": func(r *testrig.Rig) {
			r.Srv.Client("a").Refuse()
			r.Srv.CutAll()
			time.Sleep(2 * time.Minute)
			r.Srv.Client("a").Accept()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(r *testrig.Rig, c zkConn, _ <-chan zk.Event, say func(...any)) {
				r.Check(r.Srv.Create("/d", nil))
				say("watches", watchAll(c, say, disturb, r))
			})
		})
	}
}

// during makes changes while the connection is lost, and no event can be sent.
func during(change func(*testrig.Rig)) func(*testrig.Rig) {
	return func(r *testrig.Rig) {
		r.Srv.Client("a").Refuse()
		r.Srv.CutAll()
		time.Sleep(time.Second)
		change(r)
		r.Srv.Client("a").Accept()
	}
}

// watchAll sets a watch of every kind, disturbs, and says what the watches have brought. It
// closes the connection at the end.
func watchAll(c zkConn, say func(...any), disturb func(*testrig.Rig), r *testrig.Rig) string {
	r.Helper()
	_, _, data, err := c.GetW("/d")
	say("getW", err)
	_, _, exists, err := c.ExistsW("/d")
	say("existsW", err)
	_, _, birth, err := c.ExistsW("/none")
	say("existsW of nothing", err)
	_, _, children, err := c.ChildrenW("/d")
	say("childrenW", err)
	_, _, none, err := c.GetW("/none")
	say("getW of nothing", none == nil, err)
	all := []<-chan zk.Event{data, exists, birth, children}
	look := func(when string) {
		for i, ch := range all {
			select {
			case ev, more := <-ch:
				if !more {
					all[i] = nil
				}
				say(when, i, ev, more)
				if _, more := <-ch; more {
					say("a second event")
				}
				all[i] = nil
			default:
				say(when, i, "waits")
			}
		}
	}
	disturb(r)
	time.Sleep(30 * time.Second)
	look("then")
	id := c.SessionID()
	say("state", c.State(), id != 0)
	c.Close()
	time.Sleep(5 * time.Second)
	look("after Close")
	return "done"
}

// During an outage longer than the session no watch says so: who hears of it reads again at once.
func TestLostSessionIsToldWithTheNext(t *testing.T) {
	t.Parallel()
	testrig.Bubble(t, func(r *testrig.Rig) {
		r.Check(r.Srv.Create("/d", nil))
		c := r.Connect("a", client.WithRetry(retry.None()))
		conn, _ := zkconn.New(r.Ctx, c)
		defer conn.Close()
		_, _, ch, err := conn.GetW("/d")
		r.Check(err)
		r.Srv.Client("a").Refuse()
		r.Srv.CutAll()
		time.Sleep(5 * time.Minute)
		select {
		case ev := <-ch:
			t.Fatalf("in the outage: %+v", ev)
		default:
		}
		if _, _, err := conn.Get("/d"); err != zk.ErrNoServer { //nolint:errorlint // that is what is tested
			t.Errorf("in the outage: %v", err)
		}
		r.Srv.Client("a").Accept()
		ev := <-ch
		if ev.Type != zk.EventNotWatching || ev.Err != zk.ErrSessionExpired { //nolint:errorlint // that is what is tested
			t.Errorf("%+v", ev)
		}
		if _, _, _, err := conn.GetW("/d"); err != nil {
			t.Errorf("read again at once: %v", err)
		}
	})
}

// Session events are those for which programs wait.
func TestSessionEvents(t *testing.T) {
	t.Parallel()
	testrig.Bubble(t, func(r *testrig.Rig) {
		conn, events := zkconn.New(r.Ctx, r.Connect("a"))
		var got []zk.State
		read := make(chan struct{})
		go func() {
			defer close(read)
			for ev := range events {
				if ev.Type != zk.EventSession {
					r.Errorf("%+v", ev)
				}
				got = append(got, ev.State)
			}
		}()
		time.Sleep(time.Minute)
		r.Srv.CutAll()
		time.Sleep(time.Minute)
		r.Srv.Client("a").ExpireSession()
		time.Sleep(time.Minute)
		conn.Close()
		<-read
		up := []zk.State{zk.StateConnected, zk.StateHasSession}
		want := slices.Concat(up, []zk.State{zk.StateDisconnected, zk.StateConnecting}, up)
		if len(got) < len(want)+3 || !slices.Equal(got[:len(want)], want) || !slices.Contains(got, zk.StateExpired) || !slices.Equal(got[len(got)-2:], up) {
			t.Errorf("%v", got)
		}
		if conn.State() != zk.StateDisconnected {
			t.Errorf("after Close: %v", conn.State())
		}
	})
}

// After Close, and after that of the client, calls fail as go-zookeeper's do.
func TestClosed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*zkconn.Conn, *client.Client, context.CancelFunc){
		"Close":          func(conn *zkconn.Conn, _ *client.Client, _ context.CancelFunc) { conn.Close(); conn.Close() },
		"the client's":   func(_ *zkconn.Conn, c *client.Client, _ context.CancelFunc) { _ = c.Close() },
		"of the context": func(_ *zkconn.Conn, _ *client.Client, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testrig.Bubble(t, func(r *testrig.Rig) {
				r.Check(r.Srv.Create("/d", nil))
				ctx, cancel := context.WithCancel(r.Ctx)
				defer cancel()
				c := r.Connect("a")
				conn, events := zkconn.New(ctx, c)
				defer conn.Close()
				_, _, ch, err := conn.ChildrenW("/d")
				r.Check(err)
				end(conn, c, cancel)
				if ev := <-ch; ev.Type != zk.EventNotWatching || ev.Err != zk.ErrClosing { //nolint:errorlint // that is what is tested
					t.Errorf("%+v", ev)
				}
				for range events { // closed in the end
				}
				_, _, err = conn.Get("/d")
				_, _, _, errW := conn.GetW("/d")
				if err != zk.ErrConnectionClosed || errW != zk.ErrConnectionClosed { //nolint:errorlint // that is what is tested
					t.Errorf("%v, %v", err, errW)
				}
				if name != "the client's" {
					_, _, err = c.Get(r.Ctx, "/d")
					r.Check(err)
				}
			})
		})
	}
}

// A lost answer is a closed connection, as go-zookeeper says; a protected create finds its node.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	testrig.Bubble(t, func(r *testrig.Rig) {
		conn, _ := zkconn.New(r.Ctx, r.Connect("a"))
		defer conn.Close()
		r.Srv.LoseReply(zktest.Match{Op: zktest.OpCreate})
		if _, err := conn.Create("/n", nil, 0, open); err != zk.ErrConnectionClosed { //nolint:errorlint // that is what is tested
			t.Errorf("create: %v", err)
		}
		r.Srv.LoseReply(zktest.Match{Op: zktest.OpCreate})
		path, err := conn.CreateProtectedEphemeralSequential("/p-", nil, open)
		if n, there := r.Srv.Node(path); err != nil || !there || n.Stat.EphemeralOwner != conn.SessionID() {
			t.Errorf("%s, %v: %v %+v", path, err, there, n)
		}
	})
}

// PerSession runs the code again in each session.
func TestPerSession(t *testing.T) {
	t.Parallel()
	testrig.Bubble(t, func(r *testrig.Rig) {
		c := r.Connect("a")
		var ids []int64
		errDone := errors.New("done")
		err := zkconn.PerSession(r.Ctx, c, func(ctx context.Context, conn *zk.Conn) error {
			ids = append(ids, conn.SessionID())
			if _, err := conn.Create("/mine", nil, zk.FlagEphemeral, open); err != nil {
				return fmt.Errorf("create: %w", err)
			}
			if len(ids) == 3 {
				return errDone
			}
			r.Srv.Client("a").ExpireSession()
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), client.ErrSessionLost) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
			return ctx.Err() // of a session that is over: does not count
		})
		slices.Sort(ids)
		if !errors.Is(err, errDone) || len(slices.Compact(ids)) != 3 {
			t.Errorf("%v, sessions %v", err, ids)
		}
		err = zkconn.PerSession(r.Ctx, c, func(context.Context, *zk.Conn) error { return nil })
		r.Check(err)
		ctx, cancel := context.WithCancelCause(r.Ctx)
		errStop := errors.New("stop")
		err = zkconn.PerSession(ctx, c, func(ctx context.Context, _ *zk.Conn) error { cancel(errStop); <-ctx.Done(); return nil })
		testrig.WantErr(t, err, errStop)
		err = zkconn.PerSession(r.Ctx, c, func(ctx context.Context, _ *zk.Conn) error { _ = c.Close(); <-ctx.Done(); return nil })
		testrig.WantErr(t, err, client.ErrClosed)
	})
}

// What the package says that differs.
func TestDifferences(t *testing.T) {
	t.Parallel()
	testrig.Bubble(t, func(r *testrig.Rig) {
		conn, _ := zkconn.New(r.Ctx, r.Connect("a", client.WithNamespace("ns")))
		defer conn.Close()
		_, err := conn.Create("/c", nil, zk.FlagContainer, open)
		r.Check(err)
		if !slices.ContainsFunc(r.Srv.Log(), func(q zktest.Request) bool {
			return q.Op == zktest.OpCreateContainer && q.Path == "/ns/c" && q.Err == 0
		}) {
			t.Error("no container was made")
		}
		path, err := conn.CreateProtectedEphemeralSequential("/c/p-", nil, open)
		if err != nil || !regexp.MustCompile(`^/c/_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-p-\d{10}$`).MatchString(path) {
			t.Errorf("%s, %v", path, err)
		}
		results, err := conn.Multi(&zk.CreateRequest{Path: "/c/m", Acl: open})
		if err != nil || results[0].String != "/c/m" {
			t.Errorf("%v, %v", results, err)
		}
		results, err = conn.Multi(&zk.CreateRequest{Path: "/c/n", Acl: open, Flags: zk.FlagContainer})
		if err != nil || results[0].String != "/c/n" {
			t.Errorf("a container in a transaction: %v, %v", results, err)
		}
		_, _, ch, err := conn.GetW("/c/m")
		r.Check(err)
		_, err = conn.Set("/c/m", nil, -1)
		r.Check(err)
		if ev := <-ch; ev.Path != "/c/m" {
			t.Errorf("%+v", ev)
		}
	})
}

// Many goroutines use one Conn while connections and sessions end: each watch has one event.
func TestCrowd(t *testing.T) {
	t.Parallel()
	testrig.Bubble(t, func(r *testrig.Rig) {
		r.Check(r.Srv.Create("/d", nil))
		conn, _ := zkconn.New(r.Ctx, r.Connect("a"))
		defer conn.Close()
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for n := range 30 {
					_, _, ch, err := conn.GetW("/d")
					if err != nil {
						r.Errorf("%d, %d: %v", i, n, err)
						return
					}
					if n%4 == 0 {
						if _, err := conn.Set("/d", nil, -1); err != nil {
							r.Errorf("set: %v", err)
						}
					}
					select {
					case <-ch:
					case <-time.After(time.Second):
					}
				}
			})
		}
		for i := range 12 {
			time.Sleep(700 * time.Millisecond)
			if r.Srv.CutAll(); i%4 == 3 {
				r.Srv.Client("a").ExpireSession()
			}
		}
		wg.Wait()
		time.Sleep(time.Minute)
		r.Check(r.Srv.SetData("/d", nil))
		time.Sleep(time.Minute)
		if n := r.Srv.WatchCount(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}
