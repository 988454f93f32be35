// Package caches_test follows trees on real servers with package cache, and compares
// every snapshot with the history that the only writer knows.
package caches_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/recipes/cache"
)

const (
	top            = "/tree"
	clock          = "/clock" // set in each transaction: its Mzxid is that of all
	sessionTimeout = 4 * time.Second
	most           = 60 // nodes, more or less
)

// node is what a history says of a node.
type node struct {
	czxid, mzxid int64
	version      int32
}

// state is the tree after a transaction.
type state struct {
	zxid  int64
	nodes map[string]node
}

// history is the tree after each transaction of its writer.
type history struct {
	c *client.Client
	r *rand.Rand

	mu  sync.Mutex
	all []state
}

func connect(ctx context.Context, t *testing.T, servers string, opts ...client.Option) *client.Client {
	t.Helper()
	c, err := client.Connect(ctx, servers, append(opts, client.WithSessionTimeout(sessionTimeout),
		client.WithConnectTimeout(time.Minute), client.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionTimeout)
		defer cancel()
		_ = c.CloseContext(ctx) // its server may be gone
	})
	return c
}

// newHistory makes the writer. Nothing strikes its server, so it knows the outcome of
// all its transactions.
func newHistory(ctx context.Context, t *testing.T, n *harness.Node, seed uint64) *history {
	t.Helper()
	h := &history{c: connect(ctx, t, n.Addr()), r: rand.New(rand.NewPCG(seed, 0))}
	if _, err := h.c.Create(ctx, clock, nil); err != nil {
		t.Fatal(err)
	}
	h.all = []state{{nodes: map[string]node{}}}
	return h
}

// last is the tree after the newest transaction.
func (h *history) last() state {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[len(h.all)-1]
}

// write applies one random transaction.
func (h *history) write(ctx context.Context) error {
	now := maps.Clone(h.last().nodes)
	ops := h.draw(now)
	results, err := h.c.Multi(ctx, append(ops, client.SetOp(clock, nil, client.AnyVersion))...)
	if err != nil {
		return err
	}
	zxid := results[len(ops)].Stat.Mzxid
	for path, n := range now {
		if n.czxid < 0 {
			n.czxid = zxid
		}
		if n.mzxid < 0 {
			n.mzxid = zxid
		}
		now[path] = n
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, state{zxid, now})
	return nil
}

// draw chooses a transaction and applies it to now. What the transaction sets has no
// zxid yet.
func (h *history) draw(now map[string]node) []client.Op {
	born := node{-1, -1, 0}
	if _, ok := now[top]; !ok {
		now[top] = born
		return []client.Op{client.CreateOp(top, nil)}
	}
	paths := slices.Sorted(maps.Keys(now))
	path := paths[h.r.IntN(len(paths))]
	data := []byte(fmt.Sprint(h.r.Uint64()))
	below := slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return !strings.HasPrefix(p, path+"/") })
	switch kind := h.r.IntN(10); {
	case kind < 4 && len(now) < most && strings.Count(path, "/") < 5:
		child := fmt.Sprintf("%s/n%d", path, h.r.IntN(4))
		if _, ok := now[child]; ok {
			break
		}
		now[child] = born
		return []client.Op{client.CreateOp(child, data)}
	case kind < 6 && (path != top || h.r.IntN(4) == 0): // with all below
		var ops []client.Op
		slices.Reverse(below)
		for _, p := range append(below, path) {
			delete(now, p)
			ops = append(ops, client.DeleteOp(p, client.AnyVersion))
		}
		if kind == 5 { // one in place of the other
			now[path] = born
			ops = append(ops, client.CreateOp(path, data))
		}
		return ops
	}
	n := now[path]
	now[path] = node{n.czxid, -1, n.version + 1}
	return []client.Op{client.SetOp(path, data, client.AnyVersion)}
}

// keep writes until ctx ends.
func (h *history) keep(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		if err := h.write(whole); err != nil {
			t.Errorf("the writer does not know what it did: %v", err)
		}
		cancel()
		select {
		case <-time.After(time.Duration(h.r.IntN(8)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// picture is what the caches of all kinds can do.
type picture interface {
	Start(ctx context.Context) error
	Close()
	Snapshot() *cache.Snapshot[string]
	State() cache.State
	Wait(ctx context.Context, zxid int64) (*cache.Snapshot[string], error)
}

// subject is a cache with all the snapshots that it showed to its reader.
type subject struct {
	name   string
	covers func(path string) bool
	in     picture
	seen   []*cache.Snapshot[string]
	stale  int
}
