package fence

import "context"

// bearer is a token that a context carries for one resource.
type bearer struct {
	resource string
	token    int64
	raised   any          // where the token was raised: a *sql.DB, a *Gate; nil if it is not known here
	held     func() error // nil if only the token is known, not the hold
	outer    *bearer      // what the context carried before
}

type bearerKey struct{}

// carried returns the innermost token that ctx carries, nil if there is none.
func carried(ctx context.Context) *bearer {
	b, _ := ctx.Value(bearerKey{}).(*bearer)
	return b
}

// find returns the innermost token for resource, nil if there is none.
func find(ctx context.Context, resource string) *bearer {
	b := carried(ctx)
	for b != nil && b.resource != resource {
		b = b.outer
	}
	return b
}

// at returns the bearer of b's token that was raised there, nil if there is
// none.
func (b *bearer) at(raised any) *bearer {
	for o := b; o != nil; o = o.outer {
		if o.resource == b.resource && o.token == b.token && o.raised == raised {
			return o
		}
	}
	return nil
}

// carry returns a context that carries the token for resource, which was
// raised there. The hold that ctx knows for the same token stays known.
func carry(ctx context.Context, resource string, token int64, raised any) context.Context {
	b := &bearer{resource: resource, token: token, raised: raised, outer: carried(ctx)}
	if known := find(ctx, resource); known != nil && known.token == token {
		b.held = known.held
	}
	return context.WithValue(ctx, bearerKey{}, b)
}

// Token returns the token that ctx carries for resource, and whether there is
// one. Do and Under put it there.
func Token(ctx context.Context, resource string) (token int64, ok bool) {
	b := find(ctx, resource)
	if b == nil {
		return 0, false
	}
	return b.token, true
}

// ended says why the hold behind b may not be relied upon any more. It is nil as
// long as no reason is known here. ended asks the hold, which looks at the clock,
// because a timer that ends a context may be late.
func (b *bearer) ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if b != nil && b.held != nil {
		return b.held()
	}
	return nil
}
