package simulation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
)

// waiter watches a node once, waits for a while and gives up, again and again.
type waiter struct {
	w    *watchWorld
	path string
	get  bool
	// hasty ones wait alone, for a node that changes seldom, and mostly give up.
	hasty bool
	r     *rand.Rand

	mu    sync.Mutex
	seen  int64
	waits bool
}

func (a *waiter) set(seen int64, waits bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen, a.waits = seen, waits
}

func (a *waiter) wait(ctx context.Context) {
	for ctx.Err() == nil {
		stat, watch, err := a.read(ctx)
		if err != nil {
			pause(ctx, time.Second)
			continue
		}
		var seen int64
		if stat != nil {
			seen = stat.Mzxid
		}
		a.set(seen, true)
		limit := time.Duration(a.r.IntN(1+a.r.IntN(40_000))) * time.Millisecond
		if a.hasty {
			limit = time.Duration(a.r.IntN(2000)) * time.Millisecond
		}
		if a.r.IntN(4) == 0 { // a waiter that is forgotten waits to this day
			limit = time.Hour
		}
		patience := time.NewTimer(limit)
		select {
		case <-watch.Done():
			a.w.count(func(s *watchTotals) { s.woken++ })
		case <-patience.C:
			a.w.count(func(s *watchTotals) { s.stopped++ })
		case <-ctx.Done():
		}
		patience.Stop()
		a.set(0, false)
		watch.Stop()
		switch a.r.IntN(4) {
		case 0, 1: // about when the watch is removed
			pause(ctx, time.Second+time.Duration(a.r.IntN(80)-40)*time.Millisecond)
		case 2:
			pause(ctx, time.Duration(a.r.IntN(20_000))*time.Millisecond)
		}
	}
}

func (a *waiter) read(ctx context.Context) (stat *zk.Stat, w *client.OneShotWatch, err error) {
	if a.get {
		_, stat, w, err = a.w.waiting.GetW(ctx, a.path)
	} else {
		_, stat, w, err = a.w.waiting.ExistsW(ctx, a.path)
	}
	return stat, w, err
}

// comeAndGo has persistent watches begin and end where waiters wait.
func (w *watchWorld) comeAndGo(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		var opts []client.WatchOption
		if r.IntN(2) == 0 {
			opts = append(opts, client.Recursive())
		}
		in, err := w.waiting.Watch(ctx, fmt.Sprintf("%s/n%d", watchRoot, r.IntN(3)), opts...)
		if err != nil {
			continue // the end
		}
		pause(ctx, time.Duration(r.IntN(6000))*time.Millisecond)
		in.Close()
		pause(ctx, time.Duration(r.IntN(6000))*time.Millisecond)
	}
}
