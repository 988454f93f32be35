package interop_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/recipes/shared"
)

// seed is the first value of the count. All others are written by one attempt each.
const seed = -7

// chain is what is known of the values of a count. It has the value that followed
// each version, and the values that were said not to have been written.
type chain struct {
	mu      sync.Mutex // guards the rest
	next    map[int32]int32
	refused map[int32]bool
	sure    int32 // writes that were acknowledged
	unsure  int32 // writes that may have been applied
	faults  []string
}

// set records a write of v after a version. Values may come again: Curator repeats a Set
// whose answer was lost.
func (ch *chain) set(version, v int32) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.sure++
	if other, ok := ch.next[version]; ok {
		ch.faults = append(ch.faults, fmt.Sprintf("%#x was set after version %d, which %#x had followed", v, version, other))
	}
	ch.next[version] = v
}

// wrote records a write after anything, which may have been repeated when an answer was
// lost.
func (ch *chain) wrote(repeated bool) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.sure++
	if repeated {
		ch.unsure++
	}
}

// refuse records that v was not written.
func (ch *chain) refuse(v int32) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.refused[v] = true
}

func (ch *chain) doubt() {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.unsure++
}

// saw records that v was read.
func (ch *chain) saw(v int32) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.refused[v] {
		ch.faults = append(ch.faults, fmt.Sprintf("%#x was read, and its writer was told that it is not there", v))
	}
}

// countLoad lets both sides set a shared count if it is what they saw, and now and then
// whatever it is.
func countLoad(ctx context.Context, t *testing.T, a *arena) {
	ch := &chain{next: map[int32]int32{}, refused: map[int32]bool{}}
	path := a.path + "/count"
	ours, err := natives(a.docents(ctx, t, 2), func(*party) (acquirer, error) { return nil, nil }) //nolint:nilnil // it sets, and acquires nothing
	check(t, err)
	counts, heard := map[*party]*shared.SharedCount{}, map[*party]*atomic.Int32{}
	for _, p := range a.parties {
		counts[p], err = shared.NewSharedCount(p.client, path, seed)
		check(t, err)
		heard[p] = follow(ctx, t, counts[p], ch)
	}
	theirs, err := curatorLock("c", "count", path, strconv.Itoa(seed)).contenders(ctx, a.curators(ctx, t, 2))
	check(t, err)
	all := slices.Concat(ours, theirs)
	for i, c := range all {
		value := int32(i+1) << 20
		set := docentSet(counts[c.party], ch)
		if c.party.side == curator {
			set = curatorSet(c, ch)
		}
		c.turn = func(ctx context.Context, c *contender) error {
			epoch, calm := c.party.at()
			began := time.Now()
			value++
			done, err := set(ctx, value, func() bool { return c.party.calmSince(epoch, calm) })
			if done {
				a.had(c, time.Since(began))
			}
			return c.excuse("set", err, c.party.calmSince(epoch, calm))
		}
	}
	a.holdless, a.fewest = true, 5
	a.run(ctx, t, all)
	settled(ctx, t, a, counts[a.parties[0]], heard, ch)
}

// follow listens to a count: each value must be newer than the one before. It returns
// the version of the last.
func follow(ctx context.Context, t *testing.T, count *shared.SharedCount, ch *chain) *atomic.Int32 {
	t.Helper()
	var last atomic.Int32
	last.Store(-1)
	t.Cleanup(count.Listen(ctx, func(now shared.VersionedCount) {
		ch.saw(now.Value)
		if before := last.Swap(now.Version); now.Version <= before {
			t.Errorf("a listener heard of version %d after %d", now.Version, before)
		}
	}))
	return &last
}

// setter sets a value and reports whether it did. calm asks whether the session
// has been left alone since the set began: with a lost answer a write may be
// repeated.
type setter func(ctx context.Context, v int32, calm func() bool) (bool, error)

// docentSet returns how a goroutine of Docent's sets a value, and whether it did.
func docentSet(count *shared.SharedCount, ch *chain) setter {
	return func(ctx context.Context, v int32, calm func() bool) (bool, error) {
		if rand.N(20) == 0 {
			err := count.Set(ctx, v)
			if err != nil {
				ch.doubt()
				return false, err
			}
			ch.wrote(!calm())
			return true, nil
		}
		prev, err := count.Get(ctx)
		if err != nil {
			return false, err
		}
		ch.saw(prev.Value)
		set, err := count.TrySet(ctx, prev, v)
		switch {
		case set:
			ch.set(prev.Version, v)
		case err != nil && client.UnknownOutcome(err):
			ch.doubt()
		default:
			ch.refuse(v)
		}
		return set, err
	}
}

// curatorSet returns how a thread of Curator's sets a value. Its "false" says nothing: it
// repeats a set whose answer was lost, and the second finds the first's version.
func curatorSet(c *contender, ch *chain) setter {
	th, name := c.party.peer.Thread(c.who), own(c.party, "c")
	return func(ctx context.Context, v int32, calm func() bool) (bool, error) {
		if rand.N(20) == 0 {
			err := th.Set(ctx, name, v)
			if err != nil {
				ch.doubt()
				return false, err
			}
			ch.wrote(!calm())
			return true, nil
		}
		prev, set, err := th.TrySet(ctx, name, v)
		switch {
		case set:
			ch.saw(prev.Value)
			ch.set(prev.Version, v)
		case !calm():
			ch.doubt()
		default:
			ch.refuse(v)
		}
		return set, err
	}
}

// settled compares what all see at the end with the number of writes.
func settled(ctx context.Context, t *testing.T, a *arena, count *shared.SharedCount, heard map[*party]*atomic.Int32, ch *chain) {
	t.Helper()
	now, err := count.Get(ctx)
	check(t, err)
	for p, last := range heard {
		for end := time.Now().Add(stuck); last.Load() != now.Version && time.Now().Before(end); {
			<-time.After(10 * time.Millisecond)
		}
		if last.Load() != now.Version {
			t.Errorf("%s has heard of version %d last, the count is %+v", p.name, last.Load(), now)
		}
	}
	for _, p := range a.parties {
		if p.side != curator {
			continue
		}
		th := p.peer.Thread("settled")
		if err := th.Await(ctx, own(p, "c"), now.Value, stuck); err != nil {
			t.Errorf("%s has not heard of %+v: %v", p.name, now, err)
		}
		if got, err := th.Get(ctx, own(p, "c")); err != nil || got != (peers.Versioned{Version: now.Version, Value: now.Value}) {
			t.Errorf("%s sees %+v, Docent %+v: %v", p.name, got, now, err)
		}
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	t.Logf("%d writes acknowledged, %d in doubt, version %d", ch.sure, ch.unsure, now.Version)
	if now.Version < ch.sure || now.Version > ch.sure+ch.unsure {
		t.Errorf("version %d after %d writes and %d in doubt", now.Version, ch.sure, ch.unsure)
	}
	for _, f := range ch.faults {
		t.Error(f)
	}
}
