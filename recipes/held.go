package recipes

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/docent-go/docent/client"
)

// heldKey finds a hold in a context. Locks of one client on one path are the
// same lock, in whatever namespace they are named.
type heldKey struct {
	root *client.Client
	path string // on the server
	tag  string
	on   any // heldOn(path), made once
}

// heldOn is the key in a context of the holds on a path of the server.
type heldOn string

func newHeldKey(c *client.Client, full, tag string) heldKey {
	return heldKey{inner.Root(c), full, tag, heldOn(full)}
}

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

// outers are the grants that an inner hold was acquired within.
type outers struct {
	grants []*grant
	stops  []func() bool // from their ends
}

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

// err is not nil once one of the outer holds is lost. It asks their sessions, as
// grant.err does.
func (o *outers) err() error {
	if o == nil {
		return nil
	}
	return lostAmong(o.grants)
}

// lostAmong is not nil once one of the grants is lost.
func lostAmong(grants []*grant) error {
	for _, g := range grants {
		if why := g.err(); errors.Is(why, ErrLost) {
			return lostWith(why)
		}
	}
	return nil
}

// leave stops waiting for the ends of the outer holds.
func (o *outers) leave() {
	if o != nil {
		for _, stop := range o.stops {
			stop()
		}
	}
}

// outerLossError is the loss of an inner hold.
type outerLossError struct {
	err error // why the outer hold was lost
}

// lostWith says that a hold is lost because another was, whose loss is why.
func lostWith(why error) error { return &outerLossError{why} }

// Error names the lock of the outer hold, and why that was lost.
func (e *outerLossError) Error() string {
	return ErrLost.Error() + " with the outer hold of " + strings.TrimPrefix(e.err.Error(), ErrLost.Error()+": ")
}

// Unwrap returns why the outer hold was lost.
func (e *outerLossError) Unwrap() error { return e.err }

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
