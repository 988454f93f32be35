package docs_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/client/zkconn"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// section are the rows of the first table below a heading of docs/from-go-zookeeper.md.
func section(t *testing.T, heading string) (rows [][]string) {
	t.Helper()
	_, text, found := strings.Cut(read(t, "from-go-zookeeper.md"), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("there is no %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|-") {
			rows = append(rows, cellsOf(line))
		}
	}
	if len(rows) < 2 {
		t.Fatalf("%q has no table", heading)
	}
	return rows[1:]
}

// silently are the rows of the table of what does something else, each with what shows it.
var silently = map[string]func(*testrig.Rig){
	"`err == zk.ErrNoNode`, `switch err`": func(r *testrig.Rig) {
		_, _, err := r.Connect("a").Get(r.Ctx, "/none")
		if err == zk.ErrNoNode || !errors.Is(err, zk.ErrNoNode) { //nolint:errorlint // that is what is tested
			r.Errorf("%#v", err)
		}
	},
	"`zk.ErrNoServer`, `zk.ErrConnectionClosed`": func(r *testrig.Rig) {
		c := r.Connect("a", client.WithRetry(retry.None()))
		r.Srv.LoseReply(zktest.Match{Op: zktest.OpCreate})
		_, err := c.Create(r.Ctx, "/n", nil)
		if errors.Is(err, zk.ErrConnectionClosed) || !client.UnknownOutcome(err) {
			r.Errorf("a lost answer: %v", err)
		}
		r.Srv.Stop()
		time.Sleep(time.Minute)
		_, _, err = c.Get(r.Ctx, "/n")
		testrig.WantErr(r, err, client.ErrNotConnected)
		testrig.WantNoErr(r, err, zk.ErrNoServer)
		r.Srv.Resume()
	},
	"`zk.ErrSessionExpired`": func(r *testrig.Rig) {
		c := r.Connect("a")
		s := r.Session(c)
		r.Srv.BeforeApply(zktest.Match{Op: zktest.OpExists}, func(context.Context, zktest.Request) { r.Srv.Client("a").ExpireSession() })
		_, _, err := c.Exists(r.Ctx, "/")
		r.Check(err)
		_, _, err = s.Exists(r.Ctx, "/")
		testrig.WantErr(r, err, client.ErrSessionLost)
	},
	"a call while no server answers fails": func(r *testrig.Rig) {
		c := r.Connect("a")
		r.Srv.Stop()
		begun := time.Now()
		_, _, err := c.Get(r.Within(10*time.Minute), "/")
		testrig.WantErr(r, err, context.DeadlineExceeded)
		if time.Since(begun) < 10*time.Minute {
			r.Errorf("after %v", time.Since(begun))
		}
		begun = time.Now()
		_, _, err = c.Retrying(retry.None()).Get(r.Ctx, "/")
		testrig.WantErr(r, err, client.ErrNotConnected)
		if time.Since(begun) > time.Minute {
			r.Errorf("a policy that gives up: after %v", time.Since(begun))
		}
		r.Srv.Resume()
	},
	"a loop around a call that failed": func(r *testrig.Rig) {
		c := r.Connect("a")
		lost := r.Srv.LoseReply(zktest.Match{Op: zktest.OpGetChildren2})
		_, _, err := c.Children(r.Ctx, "/")
		if r.Check(err); lost.Fired() != 1 {
			r.Error("nothing was lost")
		}
	},
	"`zk.Connect` returns at once": func(r *testrig.Rig) {
		r.Srv.Stop()
		_, err := r.Open("zk:2181", "a")
		testrig.WantErrText(r, err, "zk:2181")
		c := r.Connect("b", client.WithLazyConnect())
		r.Srv.Resume()
		_, _, err = c.Children(r.Ctx, "/")
		r.Check(err)
	},
	"a list of hosts": func(r *testrig.Rig) {
		r.Check(r.Srv.Create("/app/n", nil))
		c, err := r.Open(strings.Join([]string{"zk1:2181", "zk2"}, ",")+"/app", "a")
		r.Check(err)
		if got := c.Servers(); !slices.Equal(got, []string{"zk1:2181", "zk2:2181"}) {
			r.Errorf("%v", got)
		}
		_, _, err = c.Get(r.Ctx, "/n")
		r.Check(err)
	},
	"the channel of a watch brings one event": func(r *testrig.Rig) {
		_, _, w, err := r.Connect("a").GetW(r.Ctx, "/")
		r.Check(err)
		r.Srv.CutAll()
		<-w.Done()
		if event, why := w.Event(); event != zk.EventNotWatching || why == nil || errors.Is(why, client.ErrSessionLost) {
			r.Errorf("%v, %v", event, why)
		}
	},
	"a watch ends when a server says that the session has expired": func(r *testrig.Rig) {
		_, _, w, err := r.Connect("a").GetW(r.Ctx, "/")
		r.Check(err)
		r.Srv.Stop()
		<-w.Done() // in the outage
		_, why := w.Event()
		testrig.WantErr(r, why, client.ErrSessionLost)
		r.Srv.Resume()
	},
	"a watch whose channel you drop": func(r *testrig.Rig) {
		_, _, w, err := r.Connect("a").GetW(r.Ctx, "/")
		r.Check(err)
		time.Sleep(time.Minute)
		if n := r.Srv.WatchCount(); n != 1 {
			r.Errorf("%d watches", n)
		}
		w.Stop()
		time.Sleep(time.Minute)
		if n := r.Srv.WatchCount(); n != 0 {
			r.Errorf("%d watches after Stop", n)
		}
	},
	"`Create` with a `nil` ACL is refused": func(r *testrig.Rig) {
		for id, opts := range map[string][]client.Option{"anyone": nil, "u": {client.WithAuth("digest", "u:p")}} {
			c := r.Connect(id, opts...)
			_, err := c.Create(r.Ctx, "/"+id, nil)
			r.Check(err)
			if acl, _, err := c.GetACL(r.Ctx, "/"+id); err != nil || !strings.HasPrefix(acl[0].ID, id) {
				r.Errorf("%v, %v", acl, err)
			}
		}
	},
	"ephemeral nodes": func(r *testrig.Rig) {
		c := r.Connect("a")
		_, err := c.Create(r.Ctx, "/n", nil, client.Ephemeral())
		r.Check(err)
		r.Srv.Client("a").ExpireSession()
		if there, _, err := c.Exists(r.Ctx, "/n"); there || err != nil {
			r.Errorf("%v, %v", there, err)
		}
	},
	"`AddAuth` that is refused: the connection ends, and who else uses it sees errors": func(r *testrig.Rig) {
		c := r.Connect("a")
		m, err := recipes.NewInterProcessMutex(c, "/lock")
		r.Check(err)
		hold, err := m.Acquire(r.Ctx)
		r.Check(err)
		testrig.WantErr(r, c.AddAuth(r.Ctx, "nosuch", "x"), client.ErrAuthFailed)
		_, _, err = c.Get(r.Ctx, "/")
		r.Check(err)
		time.Sleep(time.Minute)
		r.Check(hold.Err())
		r.Check(hold.Release(r.Ctx))
	},
	"a call ends when its connection does": func(r *testrig.Rig) {
		c := r.Connect("a")
		r.Srv.StallReply(zktest.Match{Op: zktest.OpCreate})
		begun := time.Now()
		_, err := c.Create(r.Within(time.Second), "/n", nil)
		testrig.WantErr(r, err, context.DeadlineExceeded)
		if !client.UnknownOutcome(err) || time.Since(begun) > 2*time.Second {
			r.Errorf("%v after %v", err, time.Since(begun))
		}
	},
	"log lines by package `log`": func(r *testrig.Rig) {
		var out [2]bytes.Buffer
		for i, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug} {
			c := r.Connect(level.String(), client.WithLogger(slog.New(slog.NewTextHandler(&out[i], &slog.HandlerOptions{Level: level}))))
			r.Srv.CutAll()
			time.Sleep(time.Minute)
			r.Check(c.Close())
		}
		const theirs = "recv loop terminated"
		if strings.Contains(out[0].String(), theirs) || !strings.Contains(out[0].String(), "zookeeper: connected") || !strings.Contains(out[1].String(), theirs) {
			r.Errorf("info:\n%s\ndebug:\n%s", &out[0], &out[1])
		}
	},
}

// Each row of what does something else is checked, and nothing else is.
func TestWhatDoesSomethingElse(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, row := range section(t, "What does something else") {
		rows = append(rows, row[0])
		if silently[row[0]] == nil {
			t.Errorf("nothing checks the row %q", row[0])
		}
	}
	for row, check := range silently {
		if !slices.Contains(rows, row) {
			t.Errorf("the page has no row %q", row)
		}
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			testrig.Bubble(t, check)
		})
	}
}

// The calls in the second column exist, and those that are the same. A name without a package is one of a client.
func TestCallsOfTheClient(t *testing.T) {
	t.Parallel()
	call, found := regexp.MustCompile("`(?:c\\.)?([A-Z][A-Za-z]+)\\("), 0
	for _, row := range section(t, "Call by call") {
		named := row[1]
		if strings.HasPrefix(named, "the same") {
			named = row[0] + named
		}
		for _, name := range call.FindAllStringSubmatch(named, -1) {
			found++
			if _, has := reflect.TypeFor[*client.Client]().MethodByName(name[1]); !has {
				t.Errorf("%s: a client has no %s", row[0], name[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("%d calls", found)
	}
}

// The adapter has every method of zk.Conn; its package plays them beside go-zookeeper's.
func TestAdapterHasEveryCall(t *testing.T) {
	t.Parallel()
	theirs := reflect.TypeFor[*zk.Conn]()
	for i := range theirs.NumMethod() {
		m := theirs.Method(i)
		ours, has := reflect.TypeFor[*zkconn.Conn]().MethodByName(m.Name)
		if !has || strings.Replace(ours.Type.String(), "*zkconn.Conn", "*zk.Conn", 1) != m.Type.String() {
			t.Errorf("%s: %v, want %v", m.Name, ours.Type, m.Type)
		}
	}
}

// What stands where LockWithData was: data of the node, and of one hold.
func TestInsteadOfLockWithData(t *testing.T) {
	t.Parallel()
	testrig.Bubble(t, func(r *testrig.Rig) {
		c := r.Connect("a")
		m, err := recipes.NewInterProcessMutex(c, "/lock", recipes.WithNodeData([]byte("mine")), recipes.WithNodeACL(zk.WorldACL(zk.PermAll)...))
		r.Check(err)
		hold, err := m.Acquire(r.Ctx)
		r.Check(err)
		want := func(data string) {
			got, _, err := c.Get(r.Ctx, hold.Path())
			if err != nil || string(got) != data {
				r.Errorf("%q, %v; want %q", got, err, data)
			}
		}
		want("mine")
		_, err = c.Set(r.Ctx, hold.Path(), []byte("of this hold"), client.AnyVersion)
		r.Check(err)
		want("of this hold")
		r.Check(hold.Release(r.Ctx))
	})
}
