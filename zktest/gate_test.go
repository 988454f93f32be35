package zktest_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/zktest"
)

// gated runs f with two clients and a gate for all below /x.
func gated(t *testing.T, replies bool, f func(t *testing.T, srv *zktest.Server, g *zktest.Gate, a, b *zk.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t)
		connect := func(name string) *zk.Conn {
			link := srv.Client(name)
			conn, _, err := zk.Connect(link.Servers(), 10*time.Second, zktest.Options(link, zk.WithDialer, zk.WithHostProvider, zk.WithLogger)...)
			if err != nil {
				t.Fatal(err)
			}
			return conn
		}
		a, b := connect("a"), connect("b")
		g := srv.NewGate(zktest.Match{PathPrefix: "/x"}, replies)
		t.Cleanup(func() {
			g.Open()
			a.Close()
			b.Close()
		})
		f(t, srv, g, a, b)
	})
}

// see waits until all stands still, and compares what is parked.
func see(t *testing.T, g *zktest.Gate, want ...string) []zktest.Parked {
	t.Helper()
	synctest.Wait()
	all := g.Parked()
	var texts []string
	for _, p := range all {
		texts = append(texts, p.String())
	}
	if !slices.Equal(texts, want) {
		t.Fatalf("parked: %q, want %q", texts, want)
	}
	return all
}

func create(c *zk.Conn, path string) <-chan error {
	done := make(chan error, 1)
	go func() { // ends with the connection
		_, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		done <- err
	}()
	return done
}

// The test decides whose request the server applies first.
func TestGateRequests(t *testing.T) {
	t.Parallel()
	gated(t, false, func(t *testing.T, srv *zktest.Server, g *zktest.Gate, a, b *zk.Conn) {
		first, second := create(a, "/x"), create(b, "/x")
		all := see(t, g, "a create /x", "b create /x")
		if kids := srv.Children("/"); slices.Contains(kids, "x") {
			t.Errorf("a parked request has had its effect: %v", kids)
		}
		g.Let(all[1])
		g.Let(all[1]) // it has gone on
		if err := <-second; err != nil {
			t.Errorf("b came first: %v", err)
		}
		g.Let(see(t, g, "a create /x")[0])
		if err := <-first; err == nil {
			t.Error("both have made the node")
		}
		other := create(a, "/y") // does not match
		if err := <-other; err != nil {
			t.Error(err)
		}
		see(t, g)
	})
}

// Replies and events wait in the order of their connection, while the requests have had
// their effects.
func TestGateReplies(t *testing.T) {
	t.Parallel()
	gated(t, true, func(t *testing.T, srv *zktest.Server, g *zktest.Gate, a, b *zk.Conn) {
		watch := make(chan (<-chan zk.Event), 1)
		go func() { // ends with the connection
			_, _, w, err := a.ExistsW("/x/f1b7c0de-0000-4000-8000-000000000000")
			if err == nil {
				watch <- w
			}
		}()
		g.Let(see(t, g, "a exists /x/<uuid>")[0])
		if err := srv.Create("/x", nil); err != nil {
			t.Fatal(err)
		}
		made := create(b, "/x/f1b7c0de-0000-4000-8000-000000000000")
		g.Let(see(t, g, "a reply exists /x/<uuid> -101 (no node)", "b create /x/<uuid>")[1])
		// The event of b's create is behind a's reply.
		all := see(t, g, "a reply exists /x/<uuid> -101 (no node)", "b reply create /x/<uuid>")
		if len(srv.Children("/x")) != 1 {
			t.Error("the create has no effect")
		}
		if len(made) != 0 || len(watch) != 0 {
			t.Error("a parked reply has come")
		}
		g.Let(all[0])
		w := <-watch
		all = see(t, g, fmt.Sprintf("a event %d /x/<uuid>", zk.EventNodeCreated), "b reply create /x/<uuid>")
		if len(w) != 0 || all[0].Stage != zktest.EventParked || all[0].Event != int(zk.EventNodeCreated) {
			t.Errorf("%+v", all[0])
		}
		g.Let(all[0])
		g.Let(all[0])
		if e := <-w; e.Type != zk.EventNodeCreated {
			t.Errorf("%v", e)
		}
		g.Open() // b's reply leaves, and nothing is parked any more
		if err := <-made; err != nil {
			t.Error(err)
		}
		if err := <-create(b, "/x/y"); err != nil {
			t.Error(err)
		}
	})
}
