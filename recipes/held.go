package recipes

import (
	"context"
	"errors"

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
