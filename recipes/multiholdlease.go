package recipes

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Deadline returns the instant before which nobody else holds any of the
// locks, by what is known now: the earliest of [Hold.Deadline]. It is zero once
// the hold is over.
func (h *MultiHold) Deadline() time.Time {
	if h.Err() != nil {
		return time.Time{}
	}
	var least time.Time
	for _, one := range h.holds {
		d := one.Deadline()
		if d.IsZero() { // it has ended since
			return d
		}
		if least.IsZero() || d.Before(least) {
			least = d
		}
	}
	return least
}

// Confirm asks the ensembles whether all of the locks are held, at once, as
// [Hold.Confirm]. After nil each was, at some moment during the call. It takes
// one write for each lock. The error joins those of all, and matches [ErrLost]
// or [ErrReleased] if the hold is over. After any other error the hold is as it
// was, and nothing new is known of the locks that the error names.
func (h *MultiHold) Confirm(ctx context.Context) error {
	if err := h.Err(); err != nil {
		return &LockError{Op: "confirm", Path: h.path, Err: err}
	}
	errs := make([]error, len(h.holds))
	var all sync.WaitGroup
	for i, one := range h.holds {
		all.Go(func() { errs[i] = one.Confirm(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Jeopardy returns a channel that is closed while any of the locks is in doubt,
// as [Hold.Jeopardy]. Once the doubt is over Jeopardy returns a new one.
func (h *MultiHold) Jeopardy() <-chan struct{} {
	var of []<-chan struct{}
	for _, one := range h.holds {
		c := one.Jeopardy()
		select {
		case <-c:
			return c
		default:
		}
		if !slices.Contains(of, c) { // one for each session
			of = append(of, c)
		}
	}
	if len(of) == 1 {
		return of[0]
	}
	return h.doubt.any(h.ctx, of)
}

// doubts is one channel for the jeopardy of several sessions.
type doubts struct {
	mu     sync.Mutex
	of     []<-chan struct{}
	joined chan struct{}
}

// any returns a channel that is closed when one of some is. While these are the
// same it is the same, and so are the goroutines that wait: they end when it is
// closed, or with ctx.
func (d *doubts) any(ctx context.Context, some []<-chan struct{}) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.Equal(d.of, some) {
		return d.joined
	}
	joined := make(chan struct{})
	d.of, d.joined = some, joined
	one := sync.OnceFunc(func() { close(joined) })
	for _, c := range some {
		go func() {
			select {
			case <-c:
				one()
			case <-joined:
			case <-ctx.Done():
			}
		}()
	}
	return joined
}
