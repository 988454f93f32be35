package fence

import (
	"context"
	"fmt"
	"sync"
)

// Gate is a [Checker] in memory: it remembers the newest token of each
// resource. The zero Gate has seen none. It is safe for concurrent use and must
// not be copied.
//
// A Gate forgets everything with its process, and knows nothing of writes that
// pass another process. A service that runs more than once, or whose data
// outlive it, keeps its tokens with the data ([Database]). While it lives, a
// Gate forgets no resource, which takes some hundred bytes for each.
type Gate struct {
	mu    sync.Mutex // guards entry and its entries; never held while a write runs
	entry map[string]*entry
}

// entry is a resource behind a gate.
type entry struct {
	newest  int64
	holder  int64             // token of the writes that run
	running map[*run]struct{} // writes that have not returned
	drained chan struct{}     // closed when the last of them has
}

// run is a write; cancel ends its context.
type run struct{ cancel context.CancelCauseFunc }

// Check refuses with a [*StaleError] a token older than the newest seen of the
// resource, and otherwise makes it the newest. A token that is equal to the
// newest comes from the same holder, which may write again.
//
// Check decides for this moment only. A newer holder's write may overtake the
// write that follows. Therefore call Check under the mutex that the write takes
// too, or use [Gate.Do].
func (g *Gate) Check(resource string, token int64) error {
	if err := valid(resource, token); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err := g.raise(resource, token)
	return err
}

// Newest returns the newest token seen of the resource, 0 if there was none.
func (g *Gate) Newest(resource string) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.entry[resource]; e != nil {
		return e.newest
	}
	return 0
}

// Do runs write if no newer token has been seen of the resource. Meanwhile no
// newer holder's write runs. When one comes, the context of write ends, with a
// [*StaleError] as the cause, and older tokens are refused from then on. The
// newer one waits until write has returned. Writes with the same token run side
// by side.
//
// The error is write's, a StaleError, or the cause of ctx's end while Do
// waited. In the last two cases write did not run; in the last the token counts
// as seen. A write that does not return keeps all newer ones out. A write may
// call Do with the same resource and token. With a newer token it would wait
// for itself until ctx ends.
func (g *Gate) Do(ctx context.Context, resource string, token int64, write func(ctx context.Context) error) error {
	if write == nil {
		return errNoFunction
	}
	if err := valid(resource, token); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(carry(ctx, resource, token, g))
	defer cancel(nil)
	w := &run{cancel}
	if err := g.enter(ctx, resource, token, w); err != nil {
		return err
	}
	defer g.leave(resource, w)
	return write(ctx)
}

// raise makes token the newest, and ends the writes of older ones. The caller
// holds g.mu.
func (g *Gate) raise(resource string, token int64) (*entry, error) {
	e := g.entry[resource]
	if e == nil {
		if g.entry == nil {
			g.entry = map[string]*entry{}
		}
		e = &entry{}
		g.entry[resource] = e
	}
	if token < e.newest {
		return nil, &StaleError{Resource: resource, Token: token, Newest: e.newest}
	}
	e.newest = token
	if e.holder < token {
		for w := range e.running {
			w.cancel(&StaleError{Resource: resource, Token: e.holder, Newest: token})
		}
	}
	return e, nil
}

// enter waits until no older holder's write runs, and lets w run.
func (g *Gate) enter(ctx context.Context, resource string, token int64, w *run) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		e, err := g.raise(resource, token)
		if err != nil {
			return err
		}
		if len(e.running) == 0 {
			e.holder, e.running, e.drained = token, map[*run]struct{}{}, make(chan struct{})
		}
		if e.holder == token {
			e.running[w] = struct{}{}
			return nil
		}
		drained := e.drained
		g.mu.Unlock()
		select {
		case <-drained:
		case <-ctx.Done():
			err = fmt.Errorf("fence: waiting for an older write to %q: %w", resource, context.Cause(ctx))
		}
		g.mu.Lock()
		if err != nil {
			return err
		}
	}
}

func (g *Gate) leave(resource string, w *run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.entry[resource]
	delete(e.running, w)
	if len(e.running) == 0 {
		close(e.drained)
	}
}
