package simulation_test

import (
	"context"
	"errors"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// nest is several locks that were taken one within the other, each in the context
// of the hold before. Nested calls of ordinary code take locks so. A nest stands
// for all its holds.
type nest struct {
	recipes.AnyHold // the innermost, which is lost with each of the others

	outer recipes.AnyHold // itself a nest, or one hold
}

func (n *nest) FencingToken() int64 { return n.outer.FencingToken() }

func (n *nest) Deadline() time.Time {
	d, outer := n.AnyHold.Deadline(), n.outer.Deadline()
	if outer.Before(d) {
		return outer
	}
	return d
}

func (n *nest) Confirm(ctx context.Context) error {
	return errors.Join(n.outer.Confirm(ctx), n.AnyHold.Confirm(ctx))
}

func (n *nest) Release(ctx context.Context) error {
	return n.both(func(h recipes.AnyHold) error { return h.Release(ctx) })
}

// Guard checks the outermost hold, whose lock's node is written.
func (n *nest) Guard(ctx context.Context, ops ...client.Op) ([]client.OpResult, error) {
	return n.outer.Guard(ctx, ops...)
}

func (n *nest) Close() error { return n.both(recipes.AnyHold.Close) }

// both ends the holds at once, so that it takes no longer than the end of one. The context of
// the innermost, which stands for all, ends first: an outer lock may be handed over in the
// process at once.
func (n *nest) both(end func(recipes.AnyHold) error) error {
	outer := make(chan error, 1)
	go func() {
		<-n.AnyHold.Context().Done()
		outer <- end(n.outer)
	}()
	return errors.Join(end(n.AnyHold), <-outer)
}

// nested calls one after the other, each within what was granted before. If one
// is refused it releases the others.
func nested(calls []call) call {
	return func(ctx context.Context) (recipes.AnyHold, error) {
		var all recipes.AnyHold
		for _, next := range calls {
			within := ctx
			if all != nil {
				bounded, cancel := context.WithCancelCause(all.Context())
				defer cancel(nil)
				defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
				within = bounded
			}
			h, err := next(within)
			switch {
			case err != nil && all != nil:
				return nil, giveUp(ctx, all, err)
			case err != nil:
				return nil, err
			case all == nil:
				all = h
			default:
				all = &nest{h, all}
			}
		}
		return all, nil
	}
}

// giveUp releases what a nest was granted before err, and waits for nothing. The loss of
// one of the holds is the reason then, as in a multi-lock.
func giveUp(ctx context.Context, all recipes.AnyHold, err error) error {
	for _, h := range each(all) {
		if lost := h.Err(); lost != nil {
			err = &recipes.LockError{Op: "acquire", Path: h.LockPath(), Err: lost}
			break
		}
	}
	over, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cancel()
	_ = all.Release(over) // the nodes are deleted in the background
	return err
}
