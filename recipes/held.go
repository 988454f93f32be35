package recipes

import (
	"context"
	"errors"
	"slices"
)

// held is the context of a hold. It lists the holds on one path that it descends
// from, the innermost first, whatever clients and locks they are of.
type held struct {
	context.Context //nolint:containedctx // it is a context

	grant *grant
	outer *held // on the same path
}

// Value finds the hold by its path, and the innermost hold of any.
func (h *held) Value(key any) any {
	if key == h.grant.key.on || key == any(anyHold{}) {
		return h
	}
	return h.Context.Value(key)
}

// within returns a context that descends from g.
func (g *grant) within(ctx context.Context) context.Context {
	outer, _ := ctx.Value(g.key.on).(*held)
	if outer != nil && outer.grant == g {
		return ctx
	}
	return &held{ctx, g, outer}
}

// within reports whether ctx descends from a hold of any kind on the path of key that was not
// released.
func within(ctx context.Context, key heldKey) bool {
	h, _ := ctx.Value(key.on).(*held)
	for h != nil && errors.Is(h.grant.err(), ErrReleased) {
		h = h.outer
	}
	return h != nil
}

// heldBy returns the innermost grant that ctx descends from and that was not
// released, nil if there is none. It may be lost.
func heldBy(ctx context.Context, key heldKey) *grant {
	h, _ := ctx.Value(key.on).(*held)
	for ; h != nil; h = h.outer {
		if h.grant.key == key && !errors.Is(h.grant.err(), ErrReleased) { // a hold of the past does not stand in the way
			return h.grant
		}
	}
	return nil
}

// A hold that is acquired in the context of another, of whatever lock, is an inner
// hold. Its work is work of the outer hold too, so the inner hold ends when the
// outer one is lost. It does not end when the outer one is only released, for the
// program has decided that.

// anyHold is the key in a context of the innermost hold that it descends from.
type anyHold struct{}

// around returns the grants that ctx descends from and that are held, the
// innermost first. Holds that are lost or released already are left out: the program
// has been told, and has kept ctx alive.
func around(ctx context.Context) (all []*grant) {
	h, _ := ctx.Value(anyHold{}).(*held)
	for ; h != nil; h, _ = h.Context.Value(anyHold{}).(*held) {
		if h.grant.ended() == nil && !slices.Contains(all, h.grant) {
			all = append(all, h.grant)
		}
	}
	return all
}

// follow ends the hold e of g when one of the grants around is lost. No goroutine
// waits for that. On error one is lost already.
func (e *ending) follow(g *grant, around []*grant) error {
	for _, o := range around {
		if o == g {
			continue
		}
		if e.outer == nil {
			e.outer = new(outers)
		}
		e.outer.grants = append(e.outer.grants, o)
		e.outer.stops = append(e.outer.stops, context.AfterFunc(o.lifetime(), func() {
			if why := o.ended(); errors.Is(why, ErrLost) {
				e.cancel(lostWith(why))
				if e == &g.first {
					g.seen.Load().lost(g.lock, lostWith(why))
				}
			}
		}))
	}
	return e.outer.err()
}

// lifetime returns a context that ends when g does.
func (g *grant) lifetime() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	ctx := g.life.get(g)
	if g.over != nil {
		g.life.stop()
	}
	return ctx
}

// get returns the context, with the values of g's first hold. The caller holds g.mu.
func (s *stoppable) get(g *grant) context.Context {
	if s.ctx == nil {
		s.ctx, s.stop = context.WithCancel(g.within(context.WithoutCancel(g.first.values)))
	}
	return s.ctx
}
