package simulation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
)

// disturb lets the writer write while faults come and go, and heals everything.
func (w *watchWorld) disturb(writer *client.Client, links []link, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(w.ctx, 15*time.Second)
	defer cancel()
	var busy sync.WaitGroup
	own := generator(w.seed, fmt.Sprint("writer", r.Uint64()))
	busy.Go(func() {
		for ctx.Err() == nil {
			w.write(ctx, writer, own)
			pause(ctx, time.Duration(1+own.IntN(1+own.IntN(600)))*time.Millisecond)
		}
	})
	other := generator(w.seed, fmt.Sprint("come and go", r.Uint64()))
	busy.Go(func() { w.comeAndGo(ctx, other) })
	for ctx.Err() == nil {
		pause(ctx, time.Duration(r.IntN(3000))*time.Millisecond)
		undo := w.strike(links[r.IntN(len(links))], r)
		pause(ctx, time.Duration(r.IntN(1+r.IntN(9000)))*time.Millisecond)
		undo()
	}
	busy.Wait()
	for _, l := range links {
		l.Heal()
	}
	w.e.Heal()
	for i := 1; i <= members; i++ {
		m := w.e.Server(i)
		m.Continue()
		m.Lag(0)
		m.ReleaseCommits()
	}
	if _, err := w.e.AwaitLeader(w.ctx); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(4 * watchSession)
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// write changes one node; what becomes of it is seen in the log.
func (w *watchWorld) write(ctx context.Context, c *client.Client, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	path := fmt.Sprintf("%s/n%d", watchRoot, r.IntN(watchNodes))
	if r.IntN(3) == 0 {
		path += fmt.Sprintf("/k%d", r.IntN(2))
	}
	switch r.IntN(3) {
	case 0:
		_, _ = c.Create(ctx, path, nil)
	case 1:
		_ = c.Delete(ctx, path, client.AnyVersion)
	default:
		_, _ = c.Set(ctx, path, nil, client.AnyVersion)
	}
}

// strike begins a fault.
func (w *watchWorld) strike(l link, r *rand.Rand) (undo func()) {
	w.count(func(s *watchTotals) { s.faults++ })
	m := w.e.Server(1 + r.IntN(members))
	switch r.IntN(12) {
	case 0:
		l.Partition()
		return l.Heal
	case 1:
		l.PartitionReplies()
		return l.Heal
	case 2:
		l.PartitionRequests()
		return l.Heal
	case 3:
		l.Freeze()
		return l.Thaw
	case 4, 5:
		l.Cut()
	case 6:
		w.e.Isolate(m.ID())
		return w.e.Heal
	case 7:
		m.Halt()
		return m.Continue
	case 8:
		m.Lag(900 * time.Millisecond)
		l.Cut()
		return func() { m.Lag(0) }
	case 9:
		m.HoldCommits()
		return m.ReleaseCommits
	case 10:
		m.Stop()
		return m.Resume
	default:
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		if s, err := []*client.Client{w.c, w.waiting}[r.IntN(2)].Session(ctx); err == nil {
			if lead := w.e.Leader(); lead != nil {
				lead.ExpireSession(s.ID())
			}
		}
	}
	return func() {}
}
