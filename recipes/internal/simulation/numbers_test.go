package simulation_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/shared"
	"github.com/docent-go/docent/retry"
)

// Numbers and values that the actors of a crowd change beside its locks. To the long number
// they add only. All else is set, to values that come once. So each value is replaced once
// at most, and whoever replaced it knows.
type numbers struct {
	long    *shared.DistributedAtomicLong // to add to
	other   *shared.DistributedAtomicLong // to set
	integer *shared.DistributedAtomicInteger
	bytes   *shared.DistributedAtomicValue
	count   *shared.SharedCount
	value   *shared.SharedValue
	ids     *shared.Sequence
	cached  *shared.CachedAtomicLong
}

// sums is what the schedule knows of them. It is guarded as the history.
type sums struct {
	sure       int64           // was added to the long number
	least, top int64           // what may have been added beside that
	last       int32           // value that was set
	replaced   map[string]bool // what was replaced, by a call that says so
}

// newNumbers returns a client's numbers.
func (w *world) newNumbers(n *node) (v *numbers, err error) {
	c, r := n.c.Load(), generator(w.seed, "numbers of "+n.name)
	v = &numbers{}
	opts := []shared.AtomicOption{say(w.words, shared.WithNodeACL)(zk.WorldACL(zk.PermAll)...)}
	switch r.IntN(4) {
	case 0:
		mutex, err := recipes.NewInterProcessMutex(c, "/numbers/lock")
		if err != nil {
			return nil, err
		}
		opts = append(opts, say(w.words, shared.WithTries)(retry.NTimes(1, time.Millisecond)),
			say(w.words, shared.PromotedToLock[*recipes.Hold])(mutex, time.Duration(r.IntN(2))*time.Second, retry.NTimes(2, time.Millisecond)))
	case 1:
		opts = append(opts, say(w.words, shared.WithPersistentParents)(), say(w.words, shared.WithoutMark)(), say(w.words, shared.WithWrapping)())
	}
	made := func(failed error) {
		if err == nil {
			err = failed
		}
	}
	var failed error
	v.long, failed = say(w.words, shared.NewDistributedAtomicLong)(c, "/numbers/long", opts...)
	made(failed)
	v.other, failed = say(w.words, shared.NewDistributedAtomicLong)(c, "/numbers/other", opts...)
	made(failed)
	v.integer, failed = say(w.words, shared.NewDistributedAtomicInteger)(c, "/numbers/integer", opts...)
	made(failed)
	v.bytes, failed = say(w.words, shared.NewDistributedAtomicValue)(c, "/numbers/bytes", opts...)
	made(failed)
	v.count, failed = say(w.words, shared.NewSharedCount)(c, "/numbers/count", 0)
	made(failed)
	v.value, failed = say(w.words, shared.NewSharedValue)(c, "/numbers/value", nil)
	made(failed)
	v.ids, failed = say(w.words, shared.NewSequence)(c, "/numbers/ids", 1+r.IntN(9))
	made(failed)
	block, failed := shared.NewDistributedAtomicLong(c, "/numbers/cached")
	made(failed)
	if err == nil {
		v.cached, err = say(w.words, shared.NewCachedAtomicLong)(block, 1+r.IntN(9))
	}
	return v, err
}

// count does something with a number or a value.
func (a *actor) count() {
	patience := a.patience()
	ctx, cancel := a.limited(patience)
	defer cancel()
	begun := a.w.now()
	v := a.n.numbers
	switch a.r.IntN(8) {
	case 0, 1:
		a.add(ctx, v.long)
	case 2:
		set(ctx, a, v.integer, a.next())
		a.addOwn(ctx)
	case 3:
		if a.r.IntN(2) == 0 {
			set(ctx, a, v.other, int64(a.next()))
			break
		}
		set(ctx, a, v.bytes, fmt.Append(nil, a.next()))
	case 4:
		a.setCount(ctx, v.count)
	case 5:
		a.setValue(ctx, v.value)
	default:
		a.takeID(ctx, v)
	}
	if late := a.w.now() - begun - patience; late > 20*time.Microsecond {
		a.w.wrong("a call of %s at %v for a number came back %v after its context had ended", a.name, begun, late)
	}
}

// add adds to the number. If the result is not known, it may have been added.
func (a *actor) add(ctx context.Context, n *shared.DistributedAtomicLong) {
	var got shared.AtomicValue[int64]
	var err error
	delta := int64(1 + a.r.IntN(9))
	switch a.r.IntN(5) {
	case 0:
		got, err = say(a.w.words, n.Add)(ctx, delta)
	case 1:
		got, err = say(a.w.words, n.Subtract)(ctx, delta)
		delta = -delta
	case 2:
		got, err = say(a.w.words, n.Increment)(ctx)
		delta = 1
	case 3:
		got, err = say(a.w.words, n.Decrement)(ctx)
		delta = -1
	default:
		_, _ = say(a.w.words, n.Get)(ctx)
		return
	}
	a.added(delta, got, err)
}

// addInPeace adds to the number, which must succeed.
func (a *actor) addInPeace() {
	got, err := say(a.w.words, a.n.numbers.long.Increment)(a.w.ctx)
	a.added(1, got, err)
	if err != nil && !a.n.closed.Load() {
		a.w.wrong("%s has not added in peace: %v", a.name, err)
	}
}

// added records what a call says that was to add.
func (a *actor) added(delta int64, got shared.AtomicValue[int64], err error) {
	if err == nil && (!got.Succeeded || got.PostValue-got.PreValue != delta) {
		a.w.wrong("%s has added %d, and is told %+v", a.name, delta, got)
	}
	a.w.h.Note(func() {
		switch {
		case err == nil:
			a.w.sums.sure += delta
		case client.UnknownOutcome(err):
			a.w.sums.least, a.w.sums.top = a.w.sums.least+min(delta, 0), a.w.sums.top+max(delta, 0)
		}
	})
}

// next is a value that comes once.
func (a *actor) next() (v int32) {
	a.w.h.Note(func() { a.w.sums.last++; v = a.w.sums.last })
	return v
}

// replaces records that a call has replaced what, which no other may have.
func (a *actor) replaces(kind string, what any) {
	key, again := fmt.Sprint(kind, " ", what), false
	a.w.h.Note(func() { again = a.w.sums.replaced[key]; a.w.sums.replaced[key] = true })
	if again {
		a.w.wrong("%s was replaced twice, the second time by %s", key, a.name)
	}
}

// settable is what can be set to values that come once.
type settable[T any] interface {
	Get(ctx context.Context) (shared.AtomicValue[T], error)
	ForceSet(ctx context.Context, v T) error
	Initialize(ctx context.Context, v T) (bool, error)
	TrySet(ctx context.Context, v T) (shared.AtomicValue[T], error)
	CompareAndSet(ctx context.Context, old, v T) (shared.AtomicValue[T], error)
}

// set sets n to v, or changes it to v if it is what was read.
func set[T any](ctx context.Context, a *actor, n settable[T], v T) {
	kind := fmt.Sprintf("%T", n)
	now, err := sayOf(a.w.words, n, "Get").Get(ctx)
	var got shared.AtomicValue[T]
	switch way := a.r.IntN(8); {
	case way == 0:
		_ = sayOf(a.w.words, n, "ForceSet").ForceSet(ctx, v)
	case way == 1:
		_, _ = sayOf(a.w.words, n, "Initialize").Initialize(ctx, v)
	case way == 2:
		got, err = sayOf(a.w.words, n, "TrySet").TrySet(ctx, v)
	case err == nil:
		got, err = sayOf(a.w.words, n, "CompareAndSet").CompareAndSet(ctx, now.PostValue, v)
	}
	if err == nil && got.Succeeded {
		a.replaces(kind, got.PreValue)
	}
}

// addOwn adds to a number of its own.
func (a *actor) addOwn(ctx context.Context) {
	n, err := shared.NewDistributedAtomicInteger(a.n.c.Load(), "/numbers/of-"+a.name)
	if err != nil {
		a.w.t.Error(err)
		return
	}
	for _, add := range []func() (shared.AtomicValue[int32], error){
		func() (shared.AtomicValue[int32], error) { return say(a.w.words, n.Add)(ctx, 5) },
		func() (shared.AtomicValue[int32], error) { return say(a.w.words, n.Subtract)(ctx, 2) },
		func() (shared.AtomicValue[int32], error) { return say(a.w.words, n.Increment)(ctx) },
		func() (shared.AtomicValue[int32], error) { return say(a.w.words, n.Decrement)(ctx) },
	} {
		if got, err := add(); err == nil && (!got.Succeeded || got.PostValue == got.PreValue) {
			a.w.wrong("%s has changed a number of its own, and is told %+v", a.name, got)
		}
	}
}

func (a *actor) setCount(ctx context.Context, n *shared.SharedCount) {
	_, _ = say(a.w.words, n.Value)(ctx)
	if _, w, err := say(a.w.words, n.ValueW)(ctx); err == nil {
		w.Stop()
	}
	now, err := say(a.w.words, n.Get)(ctx)
	if err != nil || a.r.IntN(4) == 0 {
		_ = say(a.w.words, n.Set)(ctx, a.next())
		return
	}
	if set, err := say(a.w.words, n.TrySet)(ctx, now, a.next()); set && err == nil {
		a.replaces("count", now.Version)
	}
}

func (a *actor) setValue(ctx context.Context, n *shared.SharedValue) {
	now, err := say(a.w.words, n.Get)(ctx)
	v := fmt.Append(nil, a.next())
	if err != nil || a.r.IntN(4) == 0 {
		_ = say(a.w.words, n.Set)(ctx, v)
		return
	}
	if set, err := say(a.w.words, n.TrySet)(ctx, now, v); set && err == nil {
		a.replaces("value", now.Version)
	}
}

// takeID takes ids, which come once.
func (a *actor) takeID(ctx context.Context, v *numbers) {
	kind := "id"
	var first, last int64
	var err error
	switch a.r.IntN(3) {
	case 0:
		first, last, err = say(a.w.words, v.ids.Reserve)(ctx, 1+a.r.IntN(3))
	case 1:
		first, err = say(a.w.words, v.ids.Next)(ctx)
		last = first
	default:
		var got shared.AtomicValue[int64]
		got, err = say(a.w.words, v.cached.Next)(ctx)
		kind, first, last = "cached", got.PostValue, got.PostValue
	}
	for id := first; id <= last && err == nil; id++ {
		a.replaces(kind, id)
	}
}

// startFollowing lets a client follow the count and the value. Their versions only grow.
func (w *world) startFollowing(n *node) {
	w.watch.running.Go(func() {
		seen := int32(-1)
		follow := func(kind string, version int32) {
			if version <= seen {
				w.wrong("%s has seen version %d of the %s after %d", n.name, version, kind, seen)
			}
			seen = version
		}
		if generator(w.seed, "follows "+n.name).IntN(2) == 0 {
			for now, err := range say(w.words, n.numbers.count.Changes)(w.watch.ctx) {
				if err == nil {
					follow("count", now.Version)
				}
			}
			return
		}
		for now, err := range say(w.words, n.numbers.value.Changes)(w.watch.ctx) {
			if err == nil {
				follow("value", now.Version)
			}
		}
	})
	heard := [2]int32{-1, -1}
	listen := func(i int, version int32) {
		if version <= heard[i] {
			w.wrong("%s has heard of version %d after %d", n.name, version, heard[i])
		}
		heard[i] = version
	}
	stopCount := say(w.words, n.numbers.count.Listen)(w.watch.ctx, func(now shared.VersionedCount) { listen(0, now.Version) })
	stopValue := say(w.words, n.numbers.value.Listen)(w.watch.ctx, func(now shared.VersionedValue) { listen(1, now.Version) })
	w.watch.running.Go(func() {
		<-w.watch.ctx.Done()
		stopCount()
		stopValue()
	})
}

// judgeNumbers compares the number on the server with what was added.
func (w *world) judgeNumbers() {
	node, there := w.authority().Node("/numbers/long")
	sum := int64(0)
	if there && len(node.Data) == 8 {
		sum = int64(binary.BigEndian.Uint64(node.Data))
	}
	s := w.sums
	if sum < s.sure+s.least || sum > s.sure+s.top {
		w.wrong("the number is %d; %d was added, and %d to %d may have been", sum, s.sure, s.least, s.top)
	}
}
