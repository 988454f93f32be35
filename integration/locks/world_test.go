package locks_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/integration/sessions"
	"github.com/docent-go/docent/recipes/locktest"
)

// sessionTimeout is twenty ticks of the servers, the most they grant. A session
// is good for less than that, and for more than a machine under load may pause.
const sessionTimeout = 20 * tick

const tick = 500 * time.Millisecond

// paths counts the paths that all worlds have given out.
var paths atomic.Int64

// world is a part of the tree of a real ensemble.
type world struct {
	*testing.T
	servers *harness.Ensemble
	raw     *zk.Conn // sees what is really there
	links   map[string]*proxy.Proxy
	secure  *secure // nil without TLS
}

func newWorld(t *testing.T, servers *harness.Ensemble, raw *zk.Conn) *world {
	t.Helper()
	return &world{T: t, servers: servers, raw: raw, links: map[string]*proxy.Proxy{}}
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (*world) Path() string { return fmt.Sprintf("/suite/%d/lock", paths.Add(1)) }

// link is the proxy of a client. Clients are spread over the servers.
func (w *world) link(name string) *proxy.Proxy {
	w.Helper()
	if w.links[name] == nil {
		nodes := w.servers.Nodes()
		node := nodes[len(w.links)%len(nodes)]
		if w.secure != nil {
			w.links[name] = proxy.Start(w.T, node.SecureAddr(), w.secure.proxy)
		} else {
			w.links[name] = proxy.Start(w.T, node.Addr())
		}
	}
	return w.links[name]
}

func (w *world) Connect(name string) *client.Client {
	w.Helper()
	// With one address alone it would pause for a second before it tries it again.
	addr := w.link(name).Addr()
	opts := []client.Option{client.WithSessionTimeout(sessionTimeout), client.WithLogger(slog.New(slog.DiscardHandler))}
	if w.secure != nil {
		opts = append(opts, w.secure.client)
	}
	c, err := client.Connect(w.Context(), addr+","+addr, opts...)
	w.check(err)
	w.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), 10*time.Second)
		defer cancel()
		if err := c.CloseContext(ctx); err != nil {
			w.Errorf("close %s: %v", name, err)
		}
	})
	return c
}

// ways are the ways to lose an answer that a real server has given. The
// in-process server loses requests before they are served.
var ways = map[string]proxy.Action{"answer": proxy.SwallowReplyAndCut, "after": proxy.CutAfterSend}

func (*world) Ways() []string { return slices.Sorted(maps.Keys(ways)) }

type fault struct{ *proxy.Rule }

func (f fault) Fired() bool { return len(f.Rule.Fired()) > 0 }

func (w *world) Lose(name string, nth int, way string) locktest.Fault {
	w.Helper()
	return fault{w.link(name).On(proxy.Match{Nth: nth}, ways[way])}
}

func (w *world) AtAnswer(name string, nth int, f func()) locktest.Fault {
	w.Helper()
	rule := w.link(name).On(proxy.Match{Nth: nth}, proxy.StallReplies)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if _, err := rule.AwaitAnswer(w.Context()); err == nil {
			f()
		}
		rule.Resume()
	}()
	w.Cleanup(func() { <-over })
	return fault{rule}
}

// Kill shows the session's id and password to a server and closes it, as any
// program can that knows them. The server may close the connection before its
// answer has left. Then Kill asks again.
func (w *world) Kill(session int64) {
	w.Helper()
	for {
		err := sessions.KillSession(w.Context(), w.servers.Node(1).Addr(), session)
		if err == nil || errors.Is(err, sessions.ErrUnknown) || w.Context().Err() != nil { // or the test is over
			return
		}
	}
}

func (w *world) Silence(name string) { w.link(name).Stall() }

func (w *world) Heal(name string) { w.link(name).Resume() }

func (w *world) Delete(path string) {
	w.Helper()
	w.check(w.raw.Delete(path, -1))
}

func (w *world) Ephemerals(path string) []string {
	w.Helper()
	_, err := w.raw.Sync(path)
	w.check(err)
	return w.ephemerals(path)
}

func (w *world) ephemerals(path string) (all []string) {
	w.Helper()
	names, stat, err := w.raw.Children(path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case err != nil:
		w.Fatal(err)
	case stat.EphemeralOwner != 0:
		return []string{path}
	}
	for _, name := range names {
		all = append(all, w.ephemerals(path+"/"+name)...)
	}
	return all
}

func (w *world) Watched(path string) (all []string) {
	w.Helper()
	for _, node := range w.servers.Nodes() {
		watches, err := node.WatchesByPath(w.Context())
		w.check(err)
		for on, sessions := range watches {
			if strings.HasPrefix(on, path+"/") {
				all = append(all, slices.Repeat([]string{on}, len(sessions))...)
			}
		}
	}
	return all
}

// Goroutines cannot be told from the goroutines of tests beside this one. When
// the tests are over, all goroutines are looked at.
func (*world) Goroutines() []string { return nil }

func (*world) RoundTrip() time.Duration { return 4 * time.Millisecond }
