package interop_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
)

// docentSemaphore is how to get up to most permits.
func docentSemaphore(s *recipes.InterProcessSemaphoreV2, name string, most int) acquirer {
	return func(ctx context.Context, patience time.Duration) (*grant, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
		defer cancel()
		acquire := s.Acquire
		if patience < stuck && rand.N(4) == 0 {
			acquire = s.TryAcquire
		}
		n := 1 + rand.N(most)
		l, err := acquire(ctx, n)
		switch {
		case errors.Is(err, recipes.ErrBusy):
			return nil, errPatience
		case err != nil:
			return nil, err
		case l.Permits() != n || len(l.Paths()) != n:
			return nil, fmt.Errorf("asked for %d permits, got %d with the nodes %v", n, l.Permits(), l.Paths())
		}
		return granted(l, claim{lock: name, mode: permits, permits: n, nodes: l.Paths(), token: l.FencingToken()}), nil
	}
}

// enough permits for four threads of Curator's that have one each and want two.
// One of them, or of Docent's, can then get two more. With fewer permits they
// wait for each other till they give up.
const enough = 6

// semaphoreLoad lets both sides take one or two permits at a time.
func semaphoreLoad(ctx context.Context, t *testing.T, a *arena) {
	a.witness.allow("s", enough)
	ours, err := natives(a.docents(ctx, t, 2), func(p *party) (acquirer, error) {
		s, err := recipes.NewInterProcessSemaphoreV2(p.client, a.path, enough)
		return docentSemaphore(s, "s", 2), err
	})
	check(t, err)
	theirs, err := curatorSemaphore("s", 2, a.path, strconv.Itoa(enough)).contenders(ctx, a.curators(ctx, t, 2))
	check(t, err)
	a.sharing(t)
	a.run(ctx, t, append(ours, theirs...))
}

// sharing makes holders of permits stay for long enough to meet, and sees to it that they
// have.
func (a *arena) sharing(t *testing.T) {
	t.Helper()
	a.work, a.fewest = 300*time.Millisecond, 5
	t.Cleanup(func() {
		if seen, _ := a.witness.now(); seen.together < least(50) || seen.full == 0 {
			t.Errorf("the sides held permits beside each other %d times, all of them %d times", seen.together, seen.full)
		}
	})
}

// countedSemaphoreLoad lets a shared count say how many permits there are, and both sides
// change it.
func countedSemaphoreLoad(ctx context.Context, t *testing.T, a *arena) {
	const path, most = "/s", 2
	counts := map[*party]*shared.SharedCount{}
	a.witness.allow("s", enough)
	ours, err := natives(a.docents(ctx, t, 2), func(p *party) (acquirer, error) {
		count, err := shared.NewSharedCount(p.client, a.path+"/count", enough)
		if err != nil {
			return nil, err
		}
		counts[p] = count
		s, err := recipes.NewInterProcessSemaphoreV2FromCount(p.client, a.path+path, count)
		return docentSemaphore(s, "s", most), err
	})
	check(t, err)
	java := a.curators(ctx, t, 2)
	theirs, err := curatorCountedSemaphore("s", most, a.path+path, a.path+"/count", enough).contenders(ctx, java)
	check(t, err)
	a.sharing(t)
	varying, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		a.vary(varying, t, func(ctx context.Context, v int32) error { return counts[a.parties[0]].Set(ctx, v) },
			func(ctx context.Context, v int32) error {
				return java[0].peer.Thread("vary").Set(ctx, own(java[0], "count"), v)
			})
	})
	a.run(ctx, t, append(ours, theirs...))
	stop()
	group.Wait()
}

// vary changes the number of permits, by the sides in turns: enough, one more, two more
// and again. What it does while a session is killed may fail.
func (a *arena) vary(ctx context.Context, t *testing.T, sets ...func(context.Context, int32) error) {
	t.Helper()
	changed := make([]int, len(sets))
	defer func() {
		t.Logf("the number of permits was changed by Docent and Curator %v times", changed)
		for _, n := range changed {
			if n < least(4) {
				t.Errorf("the number of permits was changed %v times", changed)
			}
		}
	}()
	last := enough
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second + rand.N(2*time.Second)):
		}
		next := enough + (last-enough+1)%3
		if next > last {
			a.witness.allow("s", next) // from now on, whenever it is written
		}
		if err := sets[i%len(sets)](ctx, int32(next)); err != nil {
			continue
		}
		if next < last {
			a.witness.allow("s", next)
		}
		last = next
		changed[i%len(sets)]++
	}
}
