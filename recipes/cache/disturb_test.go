package cache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
)

// burst is how many writes follow one another before the writer rests.
const burst = 40

// write changes the tree; what becomes of it is seen in the log.
func (w *world) write(ctx context.Context, r *rand.Rand, n int) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	path := top
	for range r.IntN(4) {
		path += fmt.Sprintf("/n%d", r.IntN(4))
	}
	data := []byte(strconv.Itoa(n))
	if w.guards && r.IntN(4) == 0 {
		w.guard(ctx, r, path+guarded, data)
		return
	}
	switch r.IntN(10) {
	case 0, 1, 2:
		_, _ = w.writer.Create(ctx, path, data)
	case 3:
		_ = w.writer.Delete(ctx, path, client.AnyVersion)
	case 4:
		_ = w.writer.DeleteAll(ctx, path)
	case 5: // the same version with other data
		if w.writer.Delete(ctx, path, client.AnyVersion) == nil {
			_, _ = w.writer.Create(ctx, path, data)
		}
	case 6:
		_, _ = w.other.Create(ctx, path, data, client.Ephemeral())
	case 7:
		_, _ = w.writer.Multi(ctx,
			client.SetOp(path, data, client.AnyVersion), client.CreateOp(path+"/n0", data), client.CreateOp(path+"/n2", data))
	default:
		_, _ = w.writer.Set(ctx, path, data, client.AnyVersion)
	}
}

// guard changes a node that no client may read at first. Servers tell no client of
// such a node, and of new rights. So no right is taken away.
func (w *world) guard(ctx context.Context, r *rand.Rand, path string, data []byte) {
	switch r.IntN(5) {
	case 0, 1:
		_, _ = w.writer.Create(ctx, path, data, client.ACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
	case 2:
		_ = w.writer.Delete(ctx, path, client.AnyVersion)
	case 3:
		_, _ = w.writer.SetACL(ctx, path, zk.WorldACL(zk.PermAll), client.AnyVersion)
	default:
		_, _ = w.writer.Set(ctx, path, data, client.AnyVersion)
	}
}

// strike begins a fault.
func (w *world) strike(r *rand.Rand) (undo func()) {
	w.sum.faults++
	l, m := w.links[r.IntN(len(w.links))], w.e.Server(1+r.IntN(members))
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
		if r.IntN(2) == 0 {
			l.ExpireSession() // the next session may begin there
		}
		return m.ReleaseCommits
	case 10:
		m.Stop()
		return m.Resume
	default:
		l.ExpireSession()
	}
	return func() {}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// disturb writes while faults come and go, and heals everything.
func (w *world) disturb(r *rand.Rand) {
	ctx, cancel := context.WithTimeout(w.ctx, 15*time.Second)
	defer cancel()
	var busy sync.WaitGroup
	for i := range 2 {
		own := w.random(fmt.Sprint("writer", i, r.Uint64()))
		longest := []int{2, 60, 600}[own.IntN(3)]
		busy.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				w.write(ctx, own, n)
				pause(ctx, time.Duration(1+own.IntN(1+longest))*time.Millisecond)
				if n%burst == burst-1 {
					pause(ctx, time.Duration(own.IntN(1000))*time.Millisecond)
				}
			}
		})
	}
	for ctx.Err() == nil {
		pause(ctx, time.Duration(r.IntN(3000))*time.Millisecond)
		undo := w.strike(r)
		pause(ctx, time.Duration(r.IntN(1+r.IntN(9000)))*time.Millisecond)
		w.honest()
		undo()
	}
	busy.Wait()
	for _, l := range w.links {
		l.Heal()
		l.Thaw()
	}
	w.e.Heal()
	for i := 1; i <= members; i++ {
		m := w.e.Server(i)
		m.Continue()
		m.Lag(0)
		m.ReleaseCommits()
	}
	if _, err := w.e.AwaitLeader(w.ctx); err != nil {
		w.Fatal(err)
	}
	time.Sleep(4 * testrig.SessionTimeout)
}
