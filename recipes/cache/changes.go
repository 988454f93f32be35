package cache

import (
	"cmp"
	"context"
	"fmt"
	"iter"
)

// Kind is the kind of a [Change].
type Kind int

// The kinds of changes.
const (
	// Began is the first change: the snapshot is what there is.
	Began Kind = iota
	// Created: the node is new.
	Created
	// Updated: the data of the node was set. The same bytes may have been set again.
	Updated
	// Recreated: the node was deleted and made again.
	Recreated
	// Deleted: the node is gone.
	Deleted
	// Undecodable: the node is new or was set, and its data cannot be decoded or read;
	// see the Err of New.
	Undecodable
	// Gap: the reader was too slow, or the cause is [Resync] and the servers have gone
	// back, as after a restore from a backup. The changes that follow lead to the newest
	// snapshot; what came in between is left out.
	Gap
	// BecameStale: the cache cannot hear of changes any more; see State.
	BecameStale
	// BecameSynced: the cache has caught up. The changes before it led there.
	BecameSynced
)

// String returns the kind in lower case.
func (k Kind) String() string {
	if k < Began || k > BecameSynced {
		return "unknown"
	}
	return [...]string{"began", "created", "updated", "recreated", "deleted", "undecodable", "gap", "stale", "synced"}[k]
}

// Cause says how the cache has learned of a [Change].
type Cause int

// The causes.
const (
	// Live: the server has told of it.
	Live Cause = iota
	// Resync: the cache has found it when it read again, after a reconnection or a new
	// session. Changes in between may have cancelled each other.
	Resync
	// Skipped: the reader was too slow, see [Gap].
	Skipped
)

// String returns the cause in lower case.
func (c Cause) String() string {
	if c < Live || c > Skipped {
		return "unknown"
	}
	return [...]string{"live", "resync", "skipped"}[c]
}

// Change is one difference between a snapshot and the next that its reader sees.
type Change[V any] struct {
	Kind  Kind
	Cause Cause
	// Path is the node. It is empty for a change that concerns no node: Began, Gap,
	// BecameStale and BecameSynced.
	Path string
	// Old is the node before, nil if it is new. New is the node now, nil if it is gone.
	Old, New *Node[V]
	// Snapshot is the state after this change and after all others with the same
	// Snapshot. The changes of one transaction have the same.
	Snapshot *Snapshot[V]
	// Zxid is that of Snapshot. The transaction of the change itself is at most that;
	// for data it is New.Mzxid.
	Zxid int64
	// State is that of the cache when Snapshot was published.
	State State
}

// String is for logs. It has no data of nodes.
func (c Change[V]) String() string {
	s := c.Kind.String()
	if c.Path != "" {
		s += " " + c.Path
	}
	return fmt.Sprintf("%s, %v, zxid %d", s, c.Cause, c.Zxid)
}

// Changes yields Began with the first snapshot, as soon as there is one. The reader takes
// the nodes that are there already from that snapshot. Then Changes yields what changes:
// node by node, parents before children, also for nodes that are gone.
//
// Every reader has its own pace. A reader that is slower than the cache misses
// snapshots. It is told of that by a Gap, and then of the difference between the
// snapshot that it knows and the newest. So a slow reader delays no other reader, and
// costs no more memory than the snapshot that it knows.
//
// The last pair has ErrClosed, unless ctx ended first; the end of ctx ends the loop
// without a word. The loop runs on the caller's goroutine.
func (f *follower[V]) Changes(ctx context.Context) iter.Seq2[Change[V], error] {
	return func(yield func(Change[V], error) bool) {
		var seen *version[V]
		for ctx.Err() == nil {
			now := f.latest.Load()
			if now != seen && now.zxid > 0 {
				if !tell(seen, now, yield) {
					return
				}
				seen = now
			}
			if now.over {
				yield(Change[V]{State: now.state}, ErrClosed)
				return
			}
			select {
			case <-now.superseded:
			case <-ctx.Done():
			}
		}
	}
}

// tell yields the difference between two versions. It reports false once yield does.
func tell[V any](seen, now *version[V], yield func(Change[V], error) bool) bool {
	base := Change[V]{Cause: now.cause, Snapshot: &now.Snapshot, Zxid: now.zxid, State: now.state}
	say := func(kind Kind) bool {
		c := base
		c.Kind = kind
		return yield(c, nil)
	}
	if seen == nil {
		return say(Began)
	}
	if now.zxid < seen.zxid && !say(Gap) {
		return false
	}
	if now.seq > seen.seq+1 {
		base.Cause = Skipped
		if !say(Gap) {
			return false
		}
	}
	if !difference(seen.root, now.root, func(before, after *kept[V]) bool {
		c := base
		c.Old, c.New, c.Kind, c.Path = before.shown(), after.shown(), kindOf(before, after), cmp.Or(after, before).Path
		return yield(c, nil)
	}) {
		return false
	}
	switch was, is := seen.state.Phase, now.state.Phase; {
	case was == is:
		return true
	case is == Synced:
		return say(BecameSynced)
	default:
		return say(BecameStale)
	}
}

func kindOf[V any](before, after *kept[V]) Kind {
	switch {
	case after == nil:
		return Deleted
	case after.err() != nil:
		return Undecodable
	case before == nil:
		return Created
	case before.Czxid != after.Czxid && before.Czxid != 0:
		return Recreated
	default:
		return Updated
	}
}
