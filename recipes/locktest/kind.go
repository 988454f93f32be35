package locktest

import (
	"context"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// Kind is a kind of lock. Holds are counted in units. A hold takes Weight of the
// Capacity, and a hold of its Rival takes RivalWeight. All holds that are out
// together never exceed the Capacity.
type Kind struct {
	Name  string
	Make  func(c *client.Client, path string) (Lock, error)
	Rival func(c *client.Client, path string) (Lock, error) // not to be held beside it

	Capacity, Weight, RivalWeight int

	Nodes int // of one hold

	// InParts says that an acquire holds some nodes while it waits for others.
	InParts bool

	// AtTurn says that a waiter whose node was deleted is told when its turn comes.
	// Others are told at once.
	AtTurn bool

	// Returns says that a waiter whose node was deleted stands in line again.
	Returns bool
}

// exclusive reports whether one hold excludes the next.
func (k Kind) exclusive() bool { return 2*k.Weight > k.Capacity }

// Lock is what all locks have in common.
type Lock struct {
	Acquire, TryAcquire func(ctx context.Context) (recipes.AnyHold, error)
	Do, TryDo           func(ctx context.Context, fn func(ctx context.Context, hold recipes.AnyHold) error) error
	Queue               func(ctx context.Context) ([]recipes.Contender, error)
}

// acquiring makes an acquire of a kind's own return what all have in common.
func acquiring[H recipes.AnyHold](acquire func(context.Context) (H, error)) func(context.Context) (recipes.AnyHold, error) {
	return func(ctx context.Context) (recipes.AnyHold, error) {
		h, err := acquire(ctx)
		if err != nil {
			return nil, err
		}
		return h, nil
	}
}

// doing makes a Do of a kind's own hand over what all have in common.
func doing[H recipes.AnyHold](do func(context.Context, func(context.Context, H) error) error) func(context.Context, func(context.Context, recipes.AnyHold) error) error {
	return func(ctx context.Context, fn func(context.Context, recipes.AnyHold) error) error {
		return do(ctx, func(ctx context.Context, h H) error { return fn(ctx, h) })
	}
}

// common is what a lock has in common with all.
func common[H recipes.AnyHold](of interface {
	Acquire(ctx context.Context) (H, error)
	TryAcquire(ctx context.Context) (H, error)
	Do(ctx context.Context, fn func(context.Context, H) error) error
	TryDo(ctx context.Context, fn func(context.Context, H) error) error
}, queue func(context.Context) ([]recipes.Contender, error),
) Lock {
	return Lock{acquiring(of.Acquire), acquiring(of.TryAcquire), doing(of.Do), doing(of.TryDo), queue}
}

// everybody is a capacity that no test uses up.
const everybody = 1000

// Kinds are all kinds of locks there are.
func Kinds() []Kind {
	one := func(name string, of func(*client.Client, string) (Lock, error)) Kind {
		return Kind{Name: name, Make: of, Rival: of, Capacity: 1, Weight: 1, RivalWeight: 1, Nodes: 1}
	}
	return []Kind{
		one("mutex", mutex),
		{Name: "read", Make: read, Rival: write, Capacity: everybody, Weight: 1, RivalWeight: everybody, Nodes: 1},
		one("write", write),
		{Name: "write against read", Make: write, Rival: read, Capacity: everybody, Weight: everybody, RivalWeight: 1, Nodes: 1},
		{Name: "permit", Make: permits(1), Rival: permits(3), Capacity: 3, Weight: 1, RivalWeight: 3, Nodes: 1, AtTurn: true},
		{Name: "permits", Make: permits(2), Rival: permits(2), Capacity: 3, Weight: 2, RivalWeight: 2, Nodes: 2, AtTurn: true},
		{Name: "semaphore mutex", Make: semaphoreMutex, Rival: semaphoreMutex, Capacity: 1, Weight: 1, RivalWeight: 1, Nodes: 1, AtTurn: true},
		{Name: "multi", Make: multiLock, Rival: oneOfMulti, Capacity: 1, Weight: 1, RivalWeight: 1, Nodes: 3, InParts: true},
		{Name: "latch", Make: latch, Rival: latch, Capacity: 1, Weight: 1, RivalWeight: 1, Nodes: 1, Returns: true},
		{Name: "selector", Make: selector, Rival: selector, Capacity: 1, Weight: 1, RivalWeight: 1, Nodes: 1, Returns: true},
		{Name: "selector against mutex", Make: selector, Rival: mutex, Capacity: 1, Weight: 1, RivalWeight: 1, Nodes: 1, Returns: true},
	}
}

func mutex(c *client.Client, path string) (Lock, error) {
	m, err := recipes.NewInterProcessMutex(c, path)
	if err != nil {
		return Lock{}, err
	}
	return common(m, m.Queue), nil
}

func read(c *client.Client, path string) (Lock, error) {
	l, err := recipes.NewInterProcessReadWriteLock(c, path)
	if err != nil {
		return Lock{}, err
	}
	return common(l.ReadLock(), l.Queue), nil
}

func write(c *client.Client, path string) (Lock, error) {
	l, err := recipes.NewInterProcessReadWriteLock(c, path)
	if err != nil {
		return Lock{}, err
	}
	return common(l.WriteLock(), l.Queue), nil
}

// permits takes n of three.
func permits(n int) func(*client.Client, string) (Lock, error) {
	return func(c *client.Client, path string) (Lock, error) {
		s, err := recipes.NewInterProcessSemaphoreV2(c, path, 3)
		if err != nil {
			return Lock{}, err
		}
		return common(some{s, n}, s.Queue), nil
	}
}

// some is n permits of a semaphore.
type some struct {
	of *recipes.InterProcessSemaphoreV2
	n  int
}

func (s some) Acquire(ctx context.Context) (*recipes.Lease, error) { return s.of.Acquire(ctx, s.n) }

func (s some) TryAcquire(ctx context.Context) (*recipes.Lease, error) {
	return s.of.TryAcquire(ctx, s.n)
}

func (s some) Do(ctx context.Context, fn func(context.Context, *recipes.Lease) error) error {
	return s.of.Do(ctx, s.n, fn)
}

func (s some) TryDo(ctx context.Context, fn func(context.Context, *recipes.Lease) error) error {
	return s.of.TryDo(ctx, s.n, fn)
}

func semaphoreMutex(c *client.Client, path string) (Lock, error) {
	m, err := recipes.NewInterProcessSemaphoreMutex(c, path)
	if err != nil {
		return Lock{}, err
	}
	return common(m, m.Queue), nil
}

// multiHold is a hold of a multi-lock and of the resource of its write lock.
type multiHold struct{ *recipes.MultiHold }

// FencingToken is that of the write lock, which others hold alone.
func (h multiHold) FencingToken() int64 { return h.Holds()[1].FencingToken() }

// multiLock is a mutex, a write lock and a permit. A waiter stands in the queue of
// the first or, holding that, of the second.
func multiLock(c *client.Client, path string) (Lock, error) {
	first, err := recipes.NewInterProcessMutex(c, path+"/a")
	if err != nil {
		return Lock{}, err
	}
	second, err := recipes.NewInterProcessReadWriteLock(c, path+writeMember)
	if err != nil {
		return Lock{}, err
	}
	third, err := recipes.NewInterProcessSemaphoreV2(c, path+"/c", 1)
	if err != nil {
		return Lock{}, err
	}
	m, err := recipes.NewInterProcessMultiLock(first, second.WriteLock(), third.Permits(1))
	if err != nil {
		return Lock{}, err
	}
	queue := func(ctx context.Context) ([]recipes.Contender, error) {
		in, err := first.Queue(ctx)
		if err != nil {
			return nil, err
		}
		then, err := second.Queue(ctx)
		return append(in, then...), err
	}
	hold := func(h *recipes.MultiHold, err error) (multiHold, error) { return multiHold{h}, err }
	return Lock{
		Acquire:    acquiring(func(ctx context.Context) (multiHold, error) { return hold(m.Acquire(ctx)) }),
		TryAcquire: acquiring(func(ctx context.Context) (multiHold, error) { return hold(m.TryAcquire(ctx)) }),
		Do:         doing(m.Do), TryDo: doing(m.TryDo), Queue: queue,
	}, nil
}

// writeMember is the path of the write lock below that of the multi-lock.
const writeMember = "/b"

// oneOfMulti is the write lock of the multi-lock alone.
func oneOfMulti(c *client.Client, path string) (Lock, error) { return write(c, path+writeMember) }

func latch(c *client.Client, path string) (Lock, error) {
	l, err := recipes.NewLeaderLatch(c, path)
	if err != nil {
		return Lock{}, err
	}
	return election(l.Election), nil
}

func selector(c *client.Client, path string) (Lock, error) {
	l, err := recipes.NewLeaderSelector(c, path)
	if err != nil {
		return Lock{}, err
	}
	return election(l.Election), nil
}

// election is an election as a lock: to acquire is to lead.
func election(e *recipes.Election) Lock {
	queue := func(ctx context.Context) ([]recipes.Contender, error) {
		all, err := e.Participants(ctx)
		line := make([]recipes.Contender, len(all))
		for i, p := range all {
			line[i] = p.Contender
		}
		return line, err
	}
	return Lock{
		Acquire: acquiring(e.Campaign), TryAcquire: acquiring(e.TryCampaign),
		Do: doing(e.Do), TryDo: doing(e.TryDo), Queue: queue,
	}
}
