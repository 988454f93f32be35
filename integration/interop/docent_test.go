package interop_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/docent-go/docent/recipes"
)

// hold is what Docent's locks give.
type hold interface {
	Context() context.Context
	Err() error
	FencingToken() int64
	Release(ctx context.Context) error
}

// lock is what Docent's locks of one permit can do.
type lock[H hold] interface {
	Acquire(ctx context.Context) (H, error)
	TryAcquire(ctx context.Context) (H, error)
}

// patient acquires in one way or the other, for at most so long.
func patient[H hold](ctx context.Context, l lock[H], patience time.Duration) (H, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errPatience)
	defer cancel()
	if patience < stuck && rand.N(4) == 0 {
		h, err := l.TryAcquire(ctx)
		if errors.Is(err, recipes.ErrBusy) {
			err = errPatience
		}
		return h, err
	}
	return l.Acquire(ctx)
}

// granted is a hold as a grant.
func granted(h hold, claims ...claim) *grant {
	return &grant{claims: claims, release: h.Release, err: h.Err, lost: h.Context().Done()}
}

// acquirer is how a contender gets what it wants, or errPatience after so long.
type acquirer func(ctx context.Context, patience time.Duration) (*grant, error)

// natives makes the contenders of clients of Docent: each client makes its lock, and
// some goroutines use it.
func natives(parties []*party, lockOf func(*party) (acquirer, error)) ([]*contender, error) {
	var all []*contender
	for _, p := range parties {
		acquire, err := lockOf(p)
		if err != nil {
			return nil, err
		}
		for i := range threads {
			all = append(all, &contender{party: p, who: fmt.Sprintf("%s-%d", p.name, i), acquire: acquire})
		}
	}
	return all, nil
}

// docentMutex is how to get a lock that only one can have.
func docentMutex(l lock[*recipes.Hold], name string) acquirer {
	return func(ctx context.Context, patience time.Duration) (*grant, error) {
		h, err := patient(ctx, l, patience)
		if err != nil {
			return nil, err
		}
		return granted(h, claim{lock: name, nodes: []string{h.Path()}, token: h.FencingToken()}), nil
	}
}

// docentReadWrite is how to read, and with so many percent to write, and perhaps to read
// on after writing.
func docentReadWrite(l *recipes.InterProcessReadWriteLock, name string, writers int) acquirer {
	reader := func(h *recipes.Hold) *grant {
		return granted(h, claim{lock: name, mode: sharing, nodes: []string{h.Path()}, token: h.FencingToken()})
	}
	return func(ctx context.Context, patience time.Duration) (*grant, error) {
		if rand.N(100) >= writers {
			h, err := patient(ctx, l.ReadLock(), patience)
			if err != nil {
				return nil, err
			}
			return reader(h), nil
		}
		h, err := patient(ctx, l.WriteLock(), patience)
		if err != nil {
			return nil, err
		}
		g := granted(h, claim{lock: name, mode: exclusive, nodes: []string{h.Path()}, token: h.FencingToken()})
		g.downgrade = func(ctx context.Context, token int64) (*grant, func(context.Context) error, error) {
			r, err := h.Downgrade(ctx)
			if err != nil {
				return nil, nil, err
			}
			if r.FencingToken() != token {
				err = fmt.Errorf("a downgrade turned token %d into %d", token, r.FencingToken())
			}
			return reader(r), func(context.Context) error { return err }, nil
		}
		return g, nil
	}
}

// docentMulti makes contenders that take some locks as one, and others that take one of
// them.
func docentMulti(locks []member, parties []*party) ([]*contender, error) {
	var all []*contender
	for i, p := range parties {
		var members []recipes.Lock
		for _, m := range locks {
			l, err := m.docent(p)
			if err != nil {
				return nil, err
			}
			members = append(members, l)
		}
		multi, err := recipes.NewInterProcessMultiLock(members...)
		if err != nil {
			return nil, err
		}
		alone := locks[(i+1)%len(locks)]
		single, err := recipes.NewInterProcessMultiLock(members[(i+1)%len(locks)])
		if err != nil {
			return nil, err
		}
		all = append(all,
			&contender{party: p, who: p.name + "-all", acquire: docentMultiAcquirer(multi, locks)},
			&contender{party: p, who: p.name + "-one", acquire: docentMultiAcquirer(single, []member{alone})})
	}
	return all, nil
}

// docent makes the lock of one client.
func (m member) docent(p *party) (recipes.Lock, error) {
	switch m.kind {
	case "rw":
		l, err := recipes.NewInterProcessReadWriteLock(p.client, m.path)
		if err != nil {
			return nil, err
		}
		return l.WriteLock(), nil
	case "semaphore-mutex":
		return recipes.NewInterProcessSemaphoreMutex(p.client, m.path)
	default:
		return recipes.NewInterProcessMutex(p.client, m.path)
	}
}

func docentMultiAcquirer(multi *recipes.InterProcessMultiLock, locks []member) acquirer {
	return func(ctx context.Context, patience time.Duration) (*grant, error) {
		h, err := patient(ctx, multi, patience)
		if err != nil {
			return nil, err
		}
		g := granted(h)
		for _, hold := range h.Holds() {
			for _, m := range locks {
				if strings.HasPrefix(hold.Path(), m.path+"/") {
					g.claims = append(g.claims, claim{lock: m.lock, nodes: []string{hold.Path()}, token: hold.FencingToken()})
				}
			}
		}
		if len(g.claims) != len(locks) {
			return nil, fmt.Errorf("%d holds of %d locks", len(g.claims), len(locks))
		}
		return g, nil
	}
}
