package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/docent-go/docent/recipes/internal/seqqueue"
)

// heldOn is the key in a context of the holds on a path of the server.
type heldOn string

// held lists the holds on one path that a context descends from, the
// innermost first, whatever clients and locks they are of.
type held struct {
	*grant

	outer *held
}

// within returns a context that descends from g.
func (g *grant) within(ctx context.Context) context.Context {
	outer, _ := ctx.Value(g.key.on).(*held)
	if outer != nil && outer.grant == g {
		return ctx
	}
	return context.WithValue(ctx, g.key.on, &held{g, outer})
}

// heldBy returns the innermost grant that ctx descends from and that was not
// released, nil if there is none. It may be lost.
func heldBy(ctx context.Context, key heldKey) *grant {
	h, _ := ctx.Value(key.on).(*held)
	for ; h != nil; h = h.outer {
		if h.key == key && !errors.Is(h.err(), ErrReleased) { // a hold of the past does not stand in the way
			return h.grant
		}
	}
	return nil
}

// reenter returns one more hold of what ctx descends from, nil if there is
// nothing.
func reenter(ctx context.Context, g *grant) (*Hold, error) {
	if g == nil {
		return nil, nil //nolint:nilnil // nothing to re-enter is a result
	}
	h, err := g.enter(ctx)
	if errors.Is(err, ErrReleased) {
		return nil, nil //nolint:nilnil // just now
	}
	return h, err
}

// deadlock returns [ErrWouldDeadlock] if member would wait for a hold that ctx
// descends from, or for somebody who waits for it. Holds of the own client are
// found in the context before there is a node; those of others may be of
// another ensemble for all that their paths tell, until they are seen in the
// queue.
func (l *lockInternals) deadlock(ctx context.Context, member *seqqueue.Member) error {
	var own []string
	h, _ := ctx.Value(l.key.on).(*held)
	for ; h != nil; h = h.outer {
		if h.err() == nil {
			for _, node := range h.nodes {
				own = append(own, node[strings.LastIndexByte(node, '/')+1:])
			}
		}
	}
	if own == nil {
		return nil
	}
	ahead, err := member.Ahead(ctx, l.blocks)
	if err != nil || ahead == nil {
		return err
	}
	line, err := l.queue.Line(ctx)
	if err != nil {
		return err
	}
	for _, n := range line {
		// A writer ahead waits for everybody before it.
		if n.Key <= ahead.Key && slices.Contains(own, n.Name) {
			return fmt.Errorf("%w: the caller holds %s by another client", ErrWouldDeadlock, l.queue.Path(n))
		}
	}
	return nil
}
