package caches_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/sessions"
	"github.com/docent-go/docent/recipes/cache"
)

// TestSnapshots kills the sessions of caches, cuts their connections and restarts a
// server, while a writer changes the tree. Each snapshot is the tree after the
// transaction that it names, none goes back, and the last one is what the servers have.
func TestSnapshots(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	e := harness.StartEnsemble(ctx, t, 3)
	if _, err := e.AwaitServing(ctx); err != nil {
		t.Fatal(err)
	}
	h := newHistory(ctx, t, e.Node(1), 1)
	persistent, oneShot, both := connect(ctx, t, e.ConnectString()), connect(ctx, t, e.ConnectString()), connect(ctx, t, e.ConnectString())
	all := []*subject{
		open(t, "persistent", persistent), open(t, "one-shot", oneShot, cache.WithOneShotWatches()),
		open(t, "persistent beside", both), open(t, "one-shot beside", both, cache.WithOneShotWatches()),
	}
	all = append(all, kinds(t, persistent, oneShot)...)
	var readers sync.WaitGroup
	for _, s := range all {
		if err := s.in.Start(ctx); err != nil {
			t.Fatal(err)
		}
		readers.Go(func() { s.follow(ctx) })
	}
	busy, stop := context.WithTimeout(ctx, 40*time.Second)
	defer stop()
	var writing sync.WaitGroup
	writing.Go(func() { h.keep(busy, t) })
	strike(busy, t, e, []*client.Client{persistent, oneShot, both})
	writing.Wait()
	if err := e.Heal(ctx); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		s.settle(ctx, t, h)
		s.in.Close()
	}
	readers.Wait() // each has kept the last snapshot
	h.servers(ctx, t)
	for _, s := range all {
		s.check(t, h)
		if len(s.seen) > 0 && s.seen[len(s.seen)-1].Zxid() < h.last().zxid {
			t.Errorf("%s: the last snapshot is %#x, the last transaction %#x", s.name, s.seen[len(s.seen)-1].Zxid(), h.last().zxid)
		}
		t.Logf("%s: %d snapshots, %d times stale, of %d transactions", s.name, len(s.seen), s.stale, len(h.all))
		if len(s.seen) < 50 || s.stale < 2 {
			t.Errorf("%s was tested too little", s.name)
		}
	}
}

// open makes a cache of the tree.
func open(t *testing.T, name string, c *client.Client, opts ...cache.Option) *subject {
	t.Helper()
	in, err := cache.NewTree(c, top, cache.Text, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return &subject{name: name, covers: func(string) bool { return true }, in: in}
}

// kinds makes caches of a directory and of one node, inside the tree.
func kinds(t *testing.T, persistent, oneShot *client.Client) (all []*subject) {
	t.Helper()
	inner := top + "/n1"
	for name, c := range map[string]*client.Client{"persistent": persistent, "one-shot": oneShot} {
		var opts []cache.Option
		if c == oneShot {
			opts = append(opts, cache.WithOneShotWatches())
		}
		children, err := cache.NewChildren(c, inner, cache.Text, opts...)
		if err != nil {
			t.Fatal(err)
		}
		value, err := cache.NewValue(c, inner, cache.Text, opts...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &subject{name: name + " children", in: children, covers: func(p string) bool {
			return p == inner || strings.HasPrefix(p, inner+"/") && strings.Count(p, "/") == 3
		}}, &subject{name: name + " value", in: value, covers: func(p string) bool { return p == inner }})
	}
	return all
}

// follow keeps the snapshots until the cache is closed. A quick loop sees most.
func (s *subject) follow(ctx context.Context) {
	var last *cache.Snapshot[string]
	stale := false
	for ctx.Err() == nil {
		state := s.in.State()
		if now := s.in.Snapshot(); now != last && now.Zxid() > 0 {
			s.seen, last = append(s.seen, now), now
		}
		if is := state.Phase == cache.Stale; is != stale {
			if stale = is; is {
				s.stale++
			}
		}
		if errors.Is(state.Err, cache.ErrClosed) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// strike kills sessions, cuts connections and restarts a follower, until ctx ends. The
// server of the writer stays.
func strike(ctx context.Context, t *testing.T, e *harness.Ensemble, clients []*client.Client) {
	t.Helper()
	r := rand.New(rand.NewPCG(2, 0))
	for i := 0; ; i++ {
		select {
		case <-time.After(time.Duration(500+r.IntN(1500)) * time.Millisecond):
		case <-ctx.Done():
			return
		}
		var err error
		whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		n := e.Node(2 + i%2)
		switch i % 3 {
		case 0:
			for _, c := range clients {
				s, missing := c.Session(whole)
				if missing == nil {
					err = sessions.KillSession(whole, e.Node(1).Addr(), s.ID())
				}
			}
		case 1:
			if err = n.CutClients(whole); err == nil {
				time.Sleep(time.Duration(r.IntN(5000)) * time.Millisecond)
				err = n.RestoreClients(whole)
			}
		default:
			if lead, unknown := e.Leader(whole); unknown == nil && lead.ID() != n.ID() {
				err = n.Restart(whole)
			}
		}
		cancel()
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// settle waits until the cache has the last transaction.
func (s *subject) settle(ctx context.Context, t *testing.T, h *history) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := s.in.Wait(ctx, h.last().zxid); err != nil {
		t.Errorf("%s: %v, state %v", s.name, err, s.in.State())
	}
}

// servers checks that the history is what the servers have.
func (h *history) servers(ctx context.Context, t *testing.T) {
	t.Helper()
	now := h.last().nodes
	for path, n := range now {
		_, stat, err := h.c.Get(ctx, path)
		if err != nil || (node{stat.Czxid, stat.Mzxid, stat.Version}) != n || int(stat.NumChildren) != children(now, path) {
			t.Errorf("the history has %s as %+v, and the servers %+v, %v", path, n, stat, err)
		}
	}
}

func children(all map[string]node, path string) (n int) {
	for p := range all {
		if strings.HasPrefix(p, path+"/") && strings.Count(p, "/") == strings.Count(path, "/")+1 {
			n++
		}
	}
	return n
}

// check compares the snapshots with the history.
func (s *subject) check(t *testing.T, h *history) {
	t.Helper()
	last := int64(0)
	for _, snapshot := range s.seen {
		if snapshot.Zxid() < last {
			t.Errorf("%s: snapshot %#x came after %#x", s.name, snapshot.Zxid(), last)
		}
		last = snapshot.Zxid()
		at, found := slices.BinarySearchFunc(h.all, last, func(a state, z int64) int { return int(a.zxid - z) })
		if !found {
			at--
		}
		if diff := s.differs(snapshot, h.all[at].nodes); diff != "" {
			t.Errorf("%s: snapshot %#x: %s", s.name, last, diff)
			return
		}
	}
}

func (s *subject) differs(snapshot *cache.Snapshot[string], want map[string]node) string {
	for path, n := range want {
		got, ok := snapshot.Get(path)
		if s.covers(path) && (!ok || (node{got.Czxid, got.Mzxid, got.Version}) != n) {
			return fmt.Sprintf("%s is %+v, want %+v", path, got, n)
		}
	}
	for path := range snapshot.All() {
		if _, ok := want[path]; !ok {
			return path + " is not there"
		}
	}
	return ""
}
