package cache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// world is one schedule: a writer changes a tree, faults strike, and caches of all
// shapes follow it.
type world struct {
	*testing.T
	ctx    context.Context
	e      *zktest.Ensemble
	seed   uint64
	keeper bool           // the servers are ClickHouse Keeper
	guards bool           // some nodes may not be read
	c      *client.Client // of the caches
	writer *client.Client
	other  *client.Client // of ephemeral nodes, whose session ends
	links  []*zktest.EnsembleLink
	all    []*subject

	mu     sync.Mutex
	broken []string
	sum    totals
}

func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

func (w *world) random(name string) *rand.Rand {
	var h uint64
	for _, b := range []byte(name) {
		h = h*31 + uint64(b)
	}
	return rand.New(rand.NewPCG(w.seed, h))
}

func (w *world) connect(name string, opts ...client.Option) *client.Client {
	l := w.e.Client(name)
	w.links = append(w.links, l)
	base, start := w.random(name).Uint64(), time.Now()
	return testrig.Connect(w.ctx, w.T, strings.Join(l.Servers(), ","), l.DialContext, append([]client.Option{
		client.WithConnectTimeout(time.Minute),
		client.WithRand(func() float64 { return rand.New(rand.NewPCG(base, uint64(time.Since(start)))).Float64() }),
	}, opts...)...)
}

func (w *world) play() {
	w.writer, w.other = w.connect("writer"), w.connect("other")
	w.c = w.connect("cache")
	w.shapes()
	w.grow()
	var readers sync.WaitGroup
	for _, s := range w.all {
		readers.Go(func() {
			s.start(w)
			s.follow(w)
		})
	}
	r := w.random("faults")
	for range rounds {
		w.disturb(r)
		w.compare()
	}
	for _, s := range w.all {
		s.tree.Close()
	}
	readers.Wait()
	w.unwatched()
	for _, s := range w.all {
		for _, b := range s.model.check(s.seen) {
			w.fail("%s: %s", s.name, b)
		}
		w.sum.add(s.sum)
	}
	for _, c := range []*client.Client{w.c, w.writer, w.other} {
		_ = c.Close()
	}
	time.Sleep(time.Minute)
	for _, stack := range testrig.Goroutines(w.T, ourFrames) {
		w.fail("a goroutine is left: %s", stack)
	}
}

// unwatched waits until the members keep no watch, for as long as some go: one request
// removes one watch, so large trees and slow networks take their time.
func (w *world) unwatched() {
	const patience = 10 * time.Second
	count := func() (n int) {
		for i := 1; i <= members; i++ {
			n += w.e.Server(i).WatchCount()
		}
		return n
	}
	least, since := count(), time.Now()
	for least > 0 && !w.keeper && time.Since(since) < patience { // Keeper's watches are not removed
		time.Sleep(patience / 20)
		if n := count(); n < least {
			least, since = n, time.Now()
		}
	}
	if least > 0 && !w.keeper {
		w.fail("%d watches are left, and none has gone for %v", least, patience)
	}
}

// grow makes a tree before the caches start: mostly none, now and then a large one.
func (w *world) grow() {
	size := 0
	switch {
	case w.seed%400 == 207:
		size = 10_000
	case w.seed%10 == 3:
		size = 500
	}
	if size == 0 {
		return
	}
	if _, err := w.writer.Create(w.ctx, top, nil); err != nil {
		w.Fatal(err)
	}
	for n := 0; n < size; n += 100 {
		dir := fmt.Sprintf("%s/d%d", top, n/100)
		ops := []client.Op{client.CreateOp(dir, nil)}
		for i := range 99 {
			ops = append(ops, client.CreateOp(fmt.Sprintf("%s/k%d", dir, i), []byte(dir)))
		}
		if _, err := w.writer.Multi(w.ctx, ops...); err != nil {
			w.Fatal(err)
		}
	}
}

// honest checks that no cache says synced while its client has no connection.
func (w *world) honest() {
	for _, s := range w.all {
		before := w.c.State()
		state := s.tree.State()
		if after := w.c.State(); before != client.Connected && after == before && state.Phase == cache.Synced {
			w.fail("%s: the client is %v and the cache %v", s.name, before, state)
		}
	}
}

// compare checks, in peace, that every cache has what is there, without being asked.
func (w *world) compare() {
	lead := w.e.Leader()
	if lead == nil {
		w.fail("no leader in peace")
		return
	}
	there := map[string]modelNode{}
	for _, n := range lead.Tree() {
		there[n.Path] = modelNode{n.Stat.Czxid, n.Stat.Mzxid, n.Stat.Version}
	}
	for _, s := range w.all {
		want := map[string]modelNode{}
		for path, n := range there {
			if s.model.covers(path) {
				want[path] = n
			}
		}
		if s.limit > 0 && len(want) <= s.limit { // it looks again within ten minutes
			ctx, cancel := context.WithTimeout(w.ctx, 11*time.Minute)
			_, _ = s.tree.WaitSynced(ctx) // the state tells
			cancel()
		}
		sure := len(want) // nodes of which the servers tell
		for path := range want {
			if strings.HasSuffix(path, guarded) {
				sure--
			}
		}
		switch state := s.tree.State(); {
		case s.limit > 0 && len(want) > s.limit && (sure > s.limit || state.Phase != cache.Synced):
			if state.Phase == cache.Synced || !errors.Is(state.Err, cache.ErrLimit) {
				w.fail("%s: %v with %d nodes", s.name, state, len(want))
			}
			w.sum.limited++
			continue
		case state.Phase != cache.Synced:
			w.fail("%s: %v in peace", s.name, state)
		}
		one := s.tree.Snapshot()
		if diff := differ(one, want, promised); diff != "" {
			w.fail("%s: missed something for good: %s", s.name, diff)
		}
		for path, n := range one.All() {
			if !unread(n) {
				continue
			}
			w.sum.unread++
			if _, _, err := w.writer.Get(w.ctx, path); !errors.Is(err, zk.ErrNoAuth) {
				w.fail("%s: the cache does not try %s again: %v", s.name, path, err)
			}
		}
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
		if _, err := s.tree.Wait(ctx, lead.Zxid()); err != nil {
			w.fail("%s: Wait for %#x: %v", s.name, lead.Zxid(), err)
		}
		cancel()
	}
}
