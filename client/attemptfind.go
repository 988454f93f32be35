package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/wire"
)

// find looks for the nodes of a request whose answer was lost; without any it returns
// nil. There are all of the nodes or none, unless another client deleted some. The
// check of the owner makes sure that the nodes are this session's.
func (a *attempt) find(ctx context.Context, s *sessionState) ([]inside.Entry, error) {
	found, some := map[string][]string{}, false
	for _, p := range a.protectedNames() {
		names, err := listed(ctx, s, p.dir)
		if err != nil {
			return nil, err
		}
		names = withPrefix(names, p.prefix)
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(ending(a), ending(b)) })
		found[p.dir], some = names, some || len(names) > 0
	}
	if !some {
		return nil, nil
	}
	made := make([]inside.Entry, len(a.nodes))
	for i, n := range a.nodes {
		names := found[n.dir]
		if len(names) == 0 {
			a.torn = true
			return nil, &fault{fmt.Errorf("%w: another client deleted a part of the group", ErrNoNode), OutcomeRefused}
		}
		made[i].Path, found[n.dir] = join(n.dir, names[0]), names[1:]
	}
	// There are more nodes than that only if a request was delivered twice. The nodes
	// that are first in line are kept.
	for _, p := range a.protectedNames() {
		for _, extra := range found[p.dir] {
			a.core.remover.remove(s, join(p.dir, extra))
		}
	}
	x := asked(wire.OpExists, made[0].Path)
	if err := s.read(ctx, x); err != nil {
		return nil, err
	}
	stat := stat(x)
	switch {
	case stat == nil && !a.single:
		return nil, &fault{fmt.Errorf("%w: another client deleted the group", ErrNoNode), OutcomeRefused}
	case stat == nil, a.nodes[0].spec.ephemeral && stat.EphemeralOwner != s.link.SessionID():
		return nil, nil
	}
	for i := range made {
		made[i].Czxid = stat.Czxid
	}
	if seen := a.nodes[0].stat; seen != nil {
		*seen = *stat
	}
	return made, nil
}

// listed lists the children of dir, and none if dir does not exist. The Sync comes
// first because the old server may have passed a create on. A server that lags would
// hide that node, and a second node would wait behind it for ever.
func listed(ctx context.Context, s *sessionState, dir string) ([]string, error) {
	sync, x := asked(wire.OpSync, dir), asked(wire.OpGetChildren, dir)
	ended := s.exchange(ctx, sync, x)
	err := s.outcome(ctx, sync, ended)
	if err == nil {
		err = s.outcome(ctx, x, ended)
	}
	switch {
	case errors.Is(err, ErrNoNode):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return x.Reply.Names, nil
}

// withPrefix are the names, of the given ones, that start with prefix.
func withPrefix(names []string, prefix string) (found []string) {
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			found = append(found, name)
		}
	}
	return found
}

// ending is the number of a sequential node. The names of one group differ in nothing
// else, so there it is the node's place in the group.
func ending(name string) string { return name[max(0, len(name)-10):] }

// protectedNames are the names by which the nodes are found.
func (a *attempt) protectedNames() (all []protectedName) {
	for _, n := range a.nodes {
		if p := (protectedName{n.dir, a.prefix}); !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
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
