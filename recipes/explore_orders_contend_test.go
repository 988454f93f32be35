package recipes_test

import (
	"context"
	"errors"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// useOnce acquires and releases what a contender is about to acquire.
func useOnce(ctx context.Context, c *client.Client, do byte) error {
	h, err := acquireFor(ctx, c, do)
	if err != nil {
		return err
	}
	return h.Release(ctx)
}

// acquireFor acquires what a contender wants first.
func acquireFor(ctx context.Context, c *client.Client, do byte) (*recipes.Hold, error) {
	switch do {
	case 'M':
		m, err := recipes.NewInterProcessMutex(c, dir)
		if err != nil {
			return nil, err
		}
		return m.Acquire(ctx)
	case 'L', 'H':
		t, err := leadFor(ctx, c, "")
		if err != nil {
			return nil, err
		}
		return t.Hold, nil
	case 'S':
		s, err := recipes.NewInterProcessSemaphoreMutex(c, dir)
		if err != nil {
			return nil, err
		}
		return s.Acquire(ctx)
	}
	l, err := recipes.NewInterProcessReadWriteLock(c, dir)
	if err != nil {
		return nil, err
	}
	if do == 'R' {
		return l.ReadLock().Acquire(ctx)
	}
	h, err := l.WriteLock().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return h.Hold, nil
}

// contend is what a contender does.
func (w *orderWorld) contend(ctx context.Context, a *orderActor, c *client.Client) error {
	switch a.do {
	case 'D':
		return w.contendAndDowngrade(ctx, a, c)
	case 'L', 'H':
		return w.contendToLead(ctx, a, c)
	}
	h, err := acquireFor(a.ctx, c, a.do)
	if err != nil {
		return err
	}
	w.granted(a, h, a.do == 'R')
	w.over(a)
	return h.Release(ctx)
}

func (w *orderWorld) contendAndDowngrade(ctx context.Context, a *orderActor, c *client.Client) error {
	l, err := recipes.NewInterProcessReadWriteLock(c, dir)
	if err != nil {
		return err
	}
	h, err := l.WriteLock().Acquire(a.ctx)
	if err != nil {
		return err
	}
	w.granted(a, h.Hold, false)
	w.mu.Lock()
	a.shared = true // from the moment at which it asks
	w.mu.Unlock()
	read, err := h.Downgrade(ctx)
	if err != nil {
		return err
	}
	w.granted(a, read, true)
	w.over(a)
	return read.Release(ctx)
}

// leadFor campaigns.
func leadFor(ctx context.Context, c *client.Client, id string) (*recipes.Term, error) {
	s, err := recipes.NewLeaderSelector(c, dir, recipes.WithID(id))
	if err != nil {
		return nil, err
	}
	return s.Campaign(ctx)
}

// contendToLead leads, and hands the term over, if it is to, or gives it up.
func (w *orderWorld) contendToLead(ctx context.Context, a *orderActor, c *client.Client) error {
	t, err := leadFor(a.ctx, c, a.name)
	if err != nil {
		return err
	}
	a.term = t.Hold
	w.granted(a, t.Hold, false)
	if a.do != 'H' {
		w.over(a)
		return t.Release(ctx)
	}
	err = t.HandOver(ctx, w.actors[len(w.actors)-1].name)
	w.over(a)
	if errors.Is(err, recipes.ErrNoParticipant) {
		err = t.Release(ctx)
	}
	return err
}
