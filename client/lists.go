package client

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

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

// names are the names that a list says, nil if there is no list or it failed.
func names(x *wire.Exchange) []string {
	if x == nil || !x.Answered() || x.Err() != nil || x.Reply.Code != 0 {
		return nil
	}
	return x.Reply.Names
}

// namesOrNone are names. If the directory is missing there are none.
func namesOrNone(x *wire.Exchange) []string {
	if x != nil && x.Answered() && errors.Is(codeError(x.Reply.Code), zk.ErrNoNode) {
		return []string{}
	}
	return names(x)
}

// statOf is the stat that a list came with, zero if there is no list or it failed.
func statOf(x *wire.Exchange) zk.Stat {
	if names(x) == nil {
		return zk.Stat{}
	}
	return x.Reply.Stat
}
