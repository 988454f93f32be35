package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// task is something to read.
type task struct {
	path string
	what what
}

type what uint8

const (
	ofData     what = iota // the data of a node
	ofChildren             // the names of its children
	ofBirth                // whether it has been made; for one-shot watches
)

// doubt says until when the last reading of a task is known to hold.
type doubt struct {
	bounds []int64 // one for each event, in ascending order: less than its transaction
	gone   int64   // if the last event is a deletion with a known transaction, that
	fresh  bool    // something was noted since the reading was asked for
	bare   int64   // if not 0, there were no children after this transaction; see compareLeaves
}

// absorb takes the events that have come, and doubts what they make out of date.
func (k *keeper[V]) absorb() error {
	events, err := k.feed.Take()
	for _, e := range events {
		if e.Kind == inside.FeedMissed {
			k.resync = true
			continue
		}
		k.note(e)
	}
	if err == nil && !k.resync { // a feed that is over has not taken what came since
		k.valid = k.head
	}
	return err
}

// note doubts what an event makes out of date.
func (k *keeper[V]) note(e inside.FeedEvent) {
	bound := e.After
	if e.Zxid > 0 {
		bound = e.Zxid - 1
	}
	switch {
	case k.resync:
		bound = min(bound, k.valid-1)
	case k.comparing:
		bound = min(bound, k.since)
	}
	if !k.covers(e.Path) {
		return
	}
	t := task{e.Path, ofData}
	switch e.Kind {
	case inside.FeedChildren:
		if !k.oneShot && !k.comparing || !k.lists(e.Path) {
			return // a persistent watch tells which child it was
		}
		t.what = ofChildren
	case inside.FeedDeleted:
		if k.doubts[t] == nil && k.root.get(e.Path) == nil && (!k.oneShot || e.Path != k.path) {
			// It was not known, and needs not be. But if the one-shot watch waits for the
			// node at the path of the cache, a comparison of another cache has ended it.
			return
		}
	default:
	}
	k.doubt(t, bound)
	if m := k.doubts[t]; e.Kind == inside.FeedDeleted {
		m.gone = e.Zxid
	} else {
		m.gone = 0
	}
}

// doubt notes that the last reading of t holds until bound, and perhaps no longer.
func (k *keeper[V]) doubt(t task, bound int64) {
	m := k.doubts[t]
	if m == nil {
		m = &doubt{}
		k.doubts[t] = m
		k.enqueue(t)
		k.large = k.large || len(k.doubts) > mostBatch
	}
	m.fresh = true
	k.readNext(t)
	if i, found := slices.BinarySearch(m.bounds, bound); !found {
		m.bounds = slices.Insert(m.bounds, i, bound)
	}
}

// readNext makes sure that t is read.
func (k *keeper[V]) readNext(t task) {
	if m := k.doubts[t]; m != nil && m.bare > 0 {
		m.bare = 0
		k.enqueue(t)
	}
}

// enqueue makes t one of the next to be read. A task whose doubt was resolved may still be in
// the queue when t is in doubt again.
func (k *keeper[V]) enqueue(t task) {
	if _, there := k.queued[t]; !there {
		k.queue = append(k.queue, t)
		k.queued[t] = struct{}{}
	}
}

// resolve notes that t was read at zxid: events before that are dealt with. An event
// that came before the reading was asked for is dealt with in any case. If its bound
// is zxid, it was no news: the comparison of another cache ended the watch.
func (k *keeper[V]) resolve(t task, zxid int64) {
	m := k.doubts[t]
	if m == nil {
		return
	}
	i, _ := slices.BinarySearch(m.bounds, zxid)
	if !m.fresh && i < len(m.bounds) && m.bounds[i] == zxid {
		i++
	}
	if m.bounds = m.bounds[i:]; len(m.bounds) == 0 {
		delete(k.doubts, t)
	}
}

// finish notes that t was read. The reading holds at least until then; if no watch
// stands, the next one has to follow.
func (k *keeper[V]) finish(t task, a inside.Answer) {
	k.resolve(t, a.Zxid)
	if a.Unwatched && (a.Err == nil || t.what == ofBirth) {
		k.doubt(t, a.Zxid)
	}
}

// levels is how far path is below that of the cache.
func (k *keeper[V]) levels(path string) int {
	if path == k.path {
		return 0
	}
	return strings.Count(strings.TrimPrefix(path, strings.TrimSuffix(k.path, "/")), "/")
}

// lists reports whether the children of path belong to the cache.
func (k *keeper[V]) lists(path string) bool { return k.depth < 0 || k.levels(path) < k.depth }

// covers reports whether path belongs to the cache.
func (k *keeper[V]) covers(path string) bool {
	switch {
	case path == k.path:
		return true
	case !isBelow(path, k.path) || k.depth >= 0 && k.levels(path) > k.depth || k.whole && (path == "/zookeeper" || isBelow(path, "/zookeeper")):
		return false
	case k.filter == nil:
		return true
	}
	for i := len(strings.TrimSuffix(k.path, "/")) + 1; i < len(path); i++ {
		if path[i] == '/' && !k.filter(path[:i]) {
			return false
		}
	}
	return k.filter(path)
}

// ask asks the server how far it is.
func (k *keeper[V]) ask(ctx context.Context) error {
	wanted := k.next()
	zxid, err := k.feed.Sync(ctx)
	if err != nil {
		return err
	}
	k.head = max(k.head, zxid)
	if err := k.absorb(); err != nil {
		return err
	}
	if zxid < wanted {
		return errBehind // the transaction may be yet to come
	}
	return nil
}

// catchUp finds out what has changed since valid, after events may have been missed.
func (k *keeper[V]) catchUp(ctx context.Context) error {
	zxid, err := k.feed.Sync(ctx)
	if err != nil {
		return err
	}
	if zxid < k.valid || zxid < k.latest.Load().zxid {
		return errBehind
	}
	k.resync, k.comparing, k.resynced = false, true, k.latest.Load().zxid > 0
	k.since = k.valid - 1
	defer func() { k.comparing = false }()
	k.head = zxid
	k.readLeaves()
	k.doubt(task{k.path, ofData}, k.valid-1)
	if k.lists(k.path) {
		k.doubt(task{k.path, ofChildren}, k.valid-1)
	}
	asks := k.known()
	if k.valid > 0 && len(asks) > 0 {
		unasked, at, err := k.feed.Compare(ctx, k.valid, asks)
		switch {
		case errors.Is(err, client.ErrUnsupported):
		case err != nil:
			k.resync = true
			return err
		default:
			asks, k.head = unasked, max(k.head, at)
		}
	}
	for _, ask := range asks {
		t := task{ask.Path, ofData}
		if ask.Children {
			t.what = ofChildren
		}
		k.doubt(t, k.valid-1)
	}
	return k.absorb()
}

// known are the readings that a comparison is about. It doubts the readings that no
// comparison can be about.
func (k *keeper[V]) known() (asks []inside.Ask) {
	k.root.walk("", "\xff", func(n *Node[V]) bool {
		switch {
		case n.Path == k.path:
			return true
		case n.unread():
			// Servers would set a watch and then keep its event to themselves.
			k.doubt(task{n.Path, ofData}, k.valid-1)
			return true
		}
		asks = append(asks, inside.Ask{Path: n.Path})
		if k.mayHaveChildren(n) {
			asks = append(asks, inside.Ask{Path: n.Path, Children: true})
		}
		return true
	})
	return asks
}

// read reads the next nodes in doubt, all in one write.
func (k *keeper[V]) read(ctx context.Context) error {
	if n := len(k.leaves); n >= mostLeaves || n > 0 && len(k.queue) == 0 {
		return k.compareLeaves(ctx)
	}
	var tasks []task
	for len(k.queue) > 0 && len(tasks) < k.batch {
		if t := k.queue[0]; k.due(t) {
			tasks = append(tasks, t)
		}
		delete(k.queued, k.queue[0])
		k.queue = k.queue[1:]
	}
	if len(tasks) == 0 {
		return nil
	}
	err := k.readAll(ctx, tasks)
	for _, t := range tasks {
		if k.due(t) {
			k.enqueue(t)
		}
	}
	return err
}

// due reports whether t is to be read.
func (k *keeper[V]) due(t task) bool {
	m := k.doubts[t]
	return m != nil && m.bare == 0
}

func (k *keeper[V]) readAll(ctx context.Context, tasks []task) error {
	asks := make([]inside.Ask, len(tasks))
	for i, t := range tasks {
		k.doubts[t].fresh = false
		asks[i] = inside.Ask{Path: t.path, Children: t.what == ofChildren, Missing: t.what == ofBirth}
	}
	answers, err := k.feed.Read(ctx, asks)
	if err != nil {
		return err
	}
	bytes := 0
	for _, a := range answers {
		k.head = max(k.head, a.Zxid)
		bytes += len(a.Data)
	}
	k.resize(len(tasks), bytes)
	if err := k.absorb(); err != nil {
		return err
	}
	var faults error
	for i, a := range answers {
		switch t := tasks[i]; {
		case a.Err != nil && !errors.Is(a.Err, zk.ErrNoNode) && !errors.Is(a.Err, zk.ErrNoAuth) &&
			(t.what != ofData || !errors.Is(a.Err, client.ErrReplyTooLarge)):
			faults = errors.Join(faults, fmt.Errorf("cache: read %s: %w", t.path, a.Err))
		case t.what == ofChildren:
			faults = errors.Join(faults, k.children(t, a))
		case t.what == ofBirth:
			k.birth(t, a)
		default:
			faults = errors.Join(faults, k.data(t, a))
		}
		if errors.Is(faults, ErrLimit) {
			return faults // the others would say the same
		}
	}
	return faults
}

// resize chooses the size of the next batch.
func (k *keeper[V]) resize(n, bytes int) {
	switch {
	case bytes > 2*batchBytes:
		k.batch = max(leastBatch, k.batch/2)
	case n == k.batch && bytes < batchBytes/2:
		k.batch = min(k.mostBatch(), 2*k.batch)
	}
}

// mostBatch is how many nodes are read at most in one write. The nodes that come next may
// be as large as servers allow by default, which is 1 MiB. All answers to one write are
// in memory at once. So the answers to one write stay below the limit, or are leastBatch.
func (k *keeper[V]) mostBatch() int {
	if k.limits.Bytes < 0 {
		return mostBatch
	}
	return int(min(max(k.limits.Bytes>>20, leastBatch), mostBatch))
}
