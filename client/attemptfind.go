package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/docent-go/docent/client/internal/duties"
	"github.com/docent-go/docent/internal/inside"
	"github.com/docent-go/docent/internal/wire"
)

// find looks for the nodes of a request whose answer was lost; without any it returns
// nil. There are all of the nodes or none, unless another client deleted some. The
// check of the owner makes sure that the nodes are this session's.
func (a *attempt) find(ctx context.Context, s *sessionState) ([]inside.Entry, error) {
	found, some := map[string][]string{}, false
	for _, dir := range a.dirs() {
		names, err := duties.Listed(ctx, s, dir)
		if err != nil {
			return nil, err
		}
		names = duties.WithPrefix(names, a.prefix)
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(duties.Ending(a), duties.Ending(b)) })
		found[dir], some = names, some || len(names) > 0
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
	for _, dir := range a.dirs() {
		for _, extra := range found[dir] {
			a.core.remover.Remove(s, join(dir, extra))
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

// dirs are the directories in which the nodes are found.
func (a *attempt) dirs() (all []string) {
	for _, n := range a.nodes {
		if !slices.Contains(all, n.dir) {
			all = append(all, n.dir)
		}
	}
	return all
}
