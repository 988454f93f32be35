package interop_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// curatorLock makes contenders that use one recipe of Curator's.
func curatorLock(lock, kind string, args ...string) foreign {
	return foreign{lock: lock, mode: exclusive, draw: one, build: func(ctx context.Context, p *party, name string) error {
		return p.peer.Make(ctx, name, p.name, kind, args...)
	}}
}

// curatorSemaphoreMutex makes contenders that use Curator's
// InterProcessSemaphoreMutex, each its own. If threads share one, a thread may
// not know that its session is over. It then releases the lease that another
// thread got in the next session.
func curatorSemaphoreMutex(lock, path string) foreign {
	f := curatorLock(lock, "semaphore-mutex", path)
	f.limit, f.perThread = true, true
	return f
}

// curatorSemaphore makes contenders that take up to most permits of a semaphore.
func curatorSemaphore(lock string, most int, args ...string) foreign {
	f := curatorLock(lock, "semaphore", args...)
	f.mode, f.limit, f.draw = permits, true, func() int { return 1 + rand.N(most) }
	return f
}

// curatorCountedSemaphore is curatorSemaphore with as many permits as a SharedCount says.
func curatorCountedSemaphore(lock string, most int, path, count string, seed int) foreign {
	f := curatorSemaphore(lock, most)
	f.build = func(ctx context.Context, p *party, name string) error {
		if err := p.peer.Make(ctx, own(p, "count"), p.name, "count", count, strconv.Itoa(seed)); err != nil {
			return err
		}
		return p.peer.Make(ctx, name, p.name, "counted-semaphore", path, own(p, "count"))
	}
	return f
}

// curatorReadWrite makes contenders of which so many percent write, and some of
// the writers read on after writing.
func curatorReadWrite(ctx context.Context, lock, path string, writers int, parties []*party) ([]*contender, error) {
	var all []*contender
	for _, p := range parties {
		if err := p.peer.Make(ctx, own(p, lock), p.name, "rw", path); err != nil {
			return nil, err
		}
		for i := range threads {
			all = append(all, curatorReaderWriter(p, lock, writers, fmt.Sprintf("%s-%d", p.name, i)))
		}
	}
	return all, nil
}

func curatorReaderWriter(p *party, lock string, writers int, who string) *contender {
	th := p.peer.Thread(who)
	read, write := own(p, lock)+".read", own(p, lock)+".write"
	reader := func(nodes []string, token int64, late bool) *grant {
		return &grant{
			claims:  []claim{{lock: lock, mode: sharing, nodes: nodes, token: token, late: late}},
			release: func(ctx context.Context) error { return th.Release(ctx, read) },
		}
	}
	return &contender{party: p, who: who, acquire: func(ctx context.Context, patience time.Duration) (*grant, error) {
		if rand.N(100) >= writers {
			nodes, err := acquireForeign(ctx, th, read, 1, patience)
			if err != nil {
				return nil, err
			}
			return reader(nodes, 0, false), nil
		}
		nodes, err := acquireForeign(ctx, th, write, 1, patience)
		if err != nil {
			return nil, err
		}
		release := func(ctx context.Context) error { return th.Release(ctx, write) }
		return &grant{
			claims:  []claim{{lock: lock, mode: exclusive, nodes: nodes}},
			release: release,
			downgrade: func(ctx context.Context, token int64) (*grant, func(context.Context) error, error) {
				nodes, err := acquireForeign(ctx, th, read, 1, stuck)
				if err != nil {
					return nil, nil, err
				}
				return reader(nodes, token, true), release, nil
			},
		}, nil
	}}
}

// curatorMulti makes contenders that take some locks as one, if asMulti is set, and
// others that take one of them.
func curatorMulti(ctx context.Context, locks []member, asMulti bool, parties []*party) ([]*contender, error) {
	var all []*contender
	for i, p := range parties {
		if asMulti {
			var names []string
			for _, m := range locks {
				name, err := m.curator(ctx, p, "all-")
				if err != nil {
					return nil, err
				}
				names = append(names, name)
			}
			if err := p.peer.Make(ctx, own(p, "multi"), p.name, "multi", names...); err != nil {
				return nil, err
			}
			all = append(all, curatorMultiContender(p, p.name+"-all", locks))
		}
		for j, m := range locks {
			if asMulti && j != i {
				continue
			}
			name, err := m.curator(ctx, p, "one-")
			if err != nil {
				return nil, err
			}
			f := foreign{lock: m.lock, limit: true, draw: one}
			all = append(all, f.contender(p, fmt.Sprintf("%s-one-%d", p.name, j), name))
		}
	}
	return all, nil
}

// member is one lock of a multi lock; the kind is the peer's word.
type member struct{ lock, kind, path string }

// curator makes the lock of one client and returns what it is called in its process.
func (m member) curator(ctx context.Context, p *party, prefix string) (string, error) {
	name := own(p, prefix+m.lock)
	err := p.peer.Make(ctx, name, p.name, m.kind, m.path)
	if m.kind == "rw" {
		name += ".write"
	}
	return name, err
}

func curatorMultiContender(p *party, who string, locks []member) *contender {
	th := p.peer.Thread(who)
	name := own(p, "multi")
	return &contender{party: p, who: who, limited: true, acquire: func(ctx context.Context, patience time.Duration) (*grant, error) {
		nodes, err := acquireForeign(ctx, th, name, 1, patience)
		if err != nil {
			return nil, err
		}
		g := &grant{release: func(ctx context.Context) error { return th.Release(ctx, name) }}
		for i, m := range locks {
			g.claims = append(g.claims, claim{lock: m.lock, nodes: slices.Clone(nodes[i : i+1])})
		}
		return g, nil
	}}
}
