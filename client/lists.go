package client

import (
	"context"

	"github.com/docent-go/docent/internal/wire"
)

// listNodes is inside.Functions.Lists.
func listNodes(ctx context.Context, s *Session, first, second string) (lists [2][]string, err error) {
	var full [2]string
	for i, path := range [...]string{first, second} {
		if full[i], err = s.full(path); err != nil {
			return lists, s.invalid(ctx, "children", path, err)
		}
	}
	err = s.do(ctx, "children", first, reads, func(ctx context.Context, t try) error {
		x, y := asked(wire.OpGetChildren, full[0]), asked(wire.OpGetChildren, full[1])
		err := t.s.call(ctx, x, y)
		lists = [2][]string{names(x), namesOrNone(y)}
		return err
	})
	return lists, err
}
