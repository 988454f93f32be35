package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client/internal/duties"
	"github.com/docent-go/docent/client/internal/fate"
	"github.com/docent-go/docent/client/internal/quota"
	"github.com/docent-go/docent/client/internal/session"
	"github.com/docent-go/docent/internal/wire"
)

// Ephemerals returns the paths of the ephemeral nodes of the client's session at path and
// below it, ordered by name (ZooKeeper 3.6.0, getEphemerals). With "/" they are all of them
// in the namespace. The server answers with all at once, see [WithMaxReply].
func (o *ops) Ephemerals(ctx context.Context, path string) ([]string, error) {
	var all []string
	err := o.do(ctx, "ephemerals", path, reads, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		// The server compares texts: it lists /ab as well as /a/b for /a.
		x := session.Ask(wire.OpGetEphemerals, full)
		if err := o.ask(ctx, t.s, session.EphemeralLists, x); err != nil {
			return err
		}
		all = make([]string, 0, len(x.Reply.Names))
		for _, node := range x.Reply.Names {
			if full == "/" || node == full || strings.HasPrefix(node, full+"/") {
				all = append(all, strings.Clone(o.stripped(node)))
			}
		}
		slices.Sort(all)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// CountDescendants returns how many nodes there are below path, at every depth, without the
// node itself (ZooKeeper 3.6.0, getAllChildrenNumber). It takes the right to read that node
// and no other.
//
// It is for people and tools: for each call the server looks at every path of its tree.
func (o *ops) CountDescendants(ctx context.Context, path string) (int, error) {
	count := 0
	err := o.do(ctx, "count descendants", path, reads, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		x := session.Ask(wire.OpCountNodes, full)
		if err := o.ask(ctx, t.s, session.NodeCounts, x); err != nil {
			return err
		}
		count = int(x.Reply.Stat.NumChildren)
		return nil
	})
	return count, err
}

// Quota limits what a tree may have: the node of its path and all below it. A limit of 0 is
// none.
//
// When a tree has more than Nodes or Bytes, the servers log a warning and nothing else. What
// HardNodes or HardBytes forbid they refuse with [ErrQuotaExceeded], but only ZooKeeper 3.7.0
// and later with the system property zookeeper.enforceQuota=true. Others ignore these two
// without a word.
type Quota struct {
	Nodes, Bytes         int64 // the servers warn above that
	HardNodes, HardBytes int64 // the servers refuse more than that
}

// TreeQuota is the quota of one tree, and what the tree has.
type TreeQuota struct {
	Path      string
	Quota     Quota
	UsedNodes int64 // the node of the path counts
	UsedBytes int64 // data alone, without paths
}

// errNoQuota is the answer about a tree without a quota of its own.
var errNoQuota = fmt.Errorf("%w: there is no quota for this path", zk.ErrNoNode)

// SetQuota gives the tree at path a quota, or replaces its quota. The node must exist. If a
// tree above or below has a quota already, SetQuota is refused, as in zkCli.sh: servers heed
// only one of both. Two clients at the same time may get past that.
//
// Servers keep quotas in nodes below /zookeeper/quota. The client makes them with its default
// ACL, see [WithDefaultACL]. After an unknown outcome the client tries again. A quota needs a
// limit; to end one call [Client.RemoveQuota]. "/" cannot have a quota, though a namespace
// or chroot can.
func (o *ops) SetQuota(ctx context.Context, path string, q Quota) error {
	return o.do(ctx, "set quota", path, repeatable, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		switch {
		case err != nil:
			return err
		case full == "/":
			return misused("servers keep no quota for /")
		case q == Quota{}:
			return misused("the quota has no limit; RemoveQuota ends one")
		case min(q.Nodes, q.Bytes, q.HardNodes, q.HardBytes) < 0:
			return misused("the quota has a limit below zero; 0 is no limit")
		}
		if err := t.s.Supports(ctx, session.Quotas); err != nil {
			return err
		}
		if err := o.quotaFree(ctx, t.s, full); err != nil {
			return err
		}
		folder, text := quota.Folder(full), []byte(quota.Limits(q).Text())
		for {
			x := &wire.Exchange{Request: wire.Request{Op: wire.OpSetData, Path: join(folder, quota.LimitsNode), Data: text, Version: AnyVersion}}
			if err := t.s.Call(ctx, x); !errors.Is(err, ErrNoNode) {
				return err
			}
			err := o.createQuota(ctx, t.s, folder, text)
			if !errors.Is(err, ErrNodeExists) { // else another client made it in between
				return err
			}
			// A usage without limits is what is left of a quota that was removed by halves.
			if err := o.dropUsage(ctx, t.s, folder); err != nil {
				return err
			}
		}
	})
}

// createQuota makes the nodes of a quota, and their parents, all or none of the two.
func (o *ops) createQuota(ctx context.Context, s *sessionState, folder string, text []byte) error {
	spec := createSpec{parents: parentsPersistent, acl: o.core.cfg.defaultACL, parentACL: o.core.cfg.defaultACL}
	root := &ops{core: o.core}
	parts := []Op{CreateOp(join(folder, quota.LimitsNode), text), CreateOp(join(folder, quota.UsageNode), []byte(quota.NoUsage))}
	return withParents(ctx, s, func() (*missingParent, error) {
		reqs, err := root.requests(parts)
		if err != nil {
			return nil, err
		}
		if err = s.transact(ctx, parts, transaction(reqs)); errors.Is(err, ErrNoNode) {
			return &missingParent{root, folder, spec}, err
		}
		return nil, err
	})
}

// dropUsage deletes the usage in folder if it has no limits beside it.
func (o *ops) dropUsage(ctx context.Context, s *sessionState, folder string) error {
	limits := session.Ask(wire.OpExists, join(folder, quota.LimitsNode))
	if err := s.Read(ctx, limits); err != nil || stat(limits) != nil {
		return err
	}
	if err := s.Call(ctx, deletion(join(folder, quota.UsageNode), AnyVersion)); !errors.Is(err, ErrNoNode) {
		return err
	}
	return nil
}

// quotaFree returns nil if the node at full exists and no tree above or below has a quota.
func (o *ops) quotaFree(ctx context.Context, s *sessionState, full string) error {
	xs := []*wire.Exchange{session.Ask(wire.OpExists, full)}
	for _, folder := range quota.Above(full) {
		xs = append(xs, session.Ask(wire.OpExists, join(folder, quota.LimitsNode)))
	}
	ended := s.Do(ctx, xs...)
	for i, x := range xs {
		err := s.Outcome(ctx, x, ended)
		switch {
		case i > 0 && err == nil:
			return o.quotaTaken(strings.TrimSuffix(x.Request.Path, "/"+quota.LimitsNode))
		case i > 0 && errors.Is(err, ErrNoNode):
		case err != nil:
			return err
		}
	}
	return quotaFolders(ctx, s, quota.Folder(full), func(folder string) error {
		if folder != quota.Folder(full) {
			return o.quotaTaken(folder)
		}
		return nil
	})
}

// quotaTaken refuses a quota because of the one in folder.
func (o *ops) quotaTaken(folder string) error {
	return fate.Refusal(fmt.Errorf("%s has a quota, and servers heed only one of two quotas one below the other; remove that first", o.shown(quota.Tree(folder))))
}

// shown is the path of the server as the caller knows it, if it is in the namespace.
func (o *ops) shown(full string) string {
	if full == o.prefix || strings.HasPrefix(full, o.prefix+"/") {
		return o.stripped(full)
	}
	return full + " (outside of this client's namespace)"
}

// quotaFolders calls f for each folder at or below top that has a quota, until f fails.
func quotaFolders(ctx context.Context, s *sessionState, top string, f func(folder string) error) error {
	for folders := []string{top}; len(folders) > 0; {
		batch := folders[:min(len(folders), duties.AtOnce)]
		folders = folders[len(batch):]
		xs := make([]*wire.Exchange, len(batch))
		for i, folder := range batch {
			xs[i] = session.Ask(wire.OpGetChildren, folder)
		}
		ended := s.Do(ctx, xs...)
		for i, folder := range batch {
			err := s.Outcome(ctx, xs[i], ended)
			if errors.Is(err, ErrNoNode) {
				continue
			}
			if err != nil {
				return err
			}
			for _, name := range xs[i].Reply.Names {
				switch name {
				case quota.LimitsNode:
					if err := f(folder); err != nil {
						return err
					}
				case quota.UsageNode:
				default:
					folders = append(folders, join(folder, name))
				}
			}
		}
	}
	return nil
}

// Quota returns the quota that was set for path, and what the tree has. If there is none the
// error matches [ErrNoNode]; the path may still be in a tree with a quota.
func (o *ops) Quota(ctx context.Context, path string) (q TreeQuota, err error) {
	err = o.do(ctx, "quota", path, reads, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		q, err = o.readQuota(ctx, t.s, quota.Folder(full))
		return err
	})
	return q, err
}

// Quotas returns the quotas of the tree at path and of all trees below it, ordered by path. It
// reads one node after the other, so it is of no single moment.
func (o *ops) Quotas(ctx context.Context, path string) (all []TreeQuota, err error) {
	err = o.do(ctx, "quotas", path, reads, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		all = nil
		return quotaFolders(ctx, t.s, quota.Folder(full), func(folder string) error {
			q, err := o.readQuota(ctx, t.s, folder)
			switch {
			case errors.Is(err, ErrNoNode): // it has just been removed
				return nil
			case err == nil:
				all = append(all, q)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b TreeQuota) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// readQuota reads the quota in folder.
func (o *ops) readQuota(ctx context.Context, s *sessionState, folder string) (q TreeQuota, err error) {
	limits, usage := session.Ask(wire.OpGetData, join(folder, quota.LimitsNode)), session.Ask(wire.OpGetData, join(folder, quota.UsageNode))
	ended := s.Do(ctx, limits, usage)
	q.Path = o.stripped(quota.Tree(folder))
	if err := s.Outcome(ctx, limits, ended); errors.Is(err, ErrNoNode) {
		return q, fate.Refusal(errNoQuota)
	} else if err != nil {
		return q, err
	}
	set, err := quota.ParseLimits(limits.Reply.Data)
	if err != nil {
		return q, fate.Refusal(fmt.Errorf("%s: %w", q.Path, err))
	}
	q.Quota = Quota(set)
	switch err := s.Outcome(ctx, usage, ended); {
	case errors.Is(err, ErrNoNode): // the servers do not count
		return q, nil
	case err != nil:
		return q, err
	}
	if q.UsedNodes, q.UsedBytes, err = quota.ParseUsage(usage.Reply.Data); err != nil {
		return q, fate.Refusal(fmt.Errorf("%s: %w", q.Path, err))
	}
	return q, nil
}

// RemoveQuota ends the quota of the tree at path. Without one the error matches [ErrNoNode].
// After an unknown outcome the client tries again, and then it counts as success if there is
// none.
func (o *ops) RemoveQuota(ctx context.Context, path string) error {
	return o.do(ctx, "remove quota", path, repeatable, func(ctx context.Context, t try) error {
		full, err := o.full(path)
		if err != nil {
			return err
		}
		folder := quota.Folder(full)
		err = o.dropQuota(ctx, t.s, folder)
		missing := errors.Is(err, ErrNoNode)
		if err != nil && !missing {
			return err
		}
		var empty []*wire.Exchange
		for _, up := range append(quota.Above(full), folder) {
			empty = append(empty, deletion(up, AnyVersion))
		}
		slices.Reverse(empty)
		_ = t.s.Do(ctx, empty...) // which servers refuse for those that are not
		if missing && !t.unknown {
			return fate.Refusal(errNoQuota)
		}
		return nil
	})
}

// dropQuota deletes the nodes of the quota in folder, both or none. If there is only one, it
// deletes that. The error matches [ErrNoNode] if there are no limits.
func (o *ops) dropQuota(ctx context.Context, s *sessionState, folder string) error {
	parts := []Op{DeleteOp(join(folder, quota.LimitsNode), AnyVersion), DeleteOp(join(folder, quota.UsageNode), AnyVersion)}
	reqs, err := (&ops{core: o.core}).requests(parts)
	if err != nil {
		return err
	}
	err = s.transact(ctx, parts, transaction(reqs))
	var lacks *MultiError
	if !errors.As(err, &lacks) || !errors.Is(err, ErrNoNode) {
		return err
	}
	if lacks.Index == 1 {
		return s.Call(ctx, deletion(parts[0].path, AnyVersion))
	}
	return errors.Join(err, o.dropUsage(ctx, s, folder))
}
