package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/inside"
)

// shrink gives up the memory that the reading of many nodes has taken.
func (k *keeper[V]) shrink() {
	if k.large {
		k.large, k.queue, k.doubts = false, nil, map[task]bool{}
	}
}

// take takes the events that have come. It reports false if some may be missing.
func (k *keeper[V]) take() (events []inside.FeedEvent, whole bool, err error) {
	events, err = k.feed.Take()
	if len(events) > 0 && events[0].Kind == inside.FeedMissed {
		k.interrupted, events = true, events[1:]
	}
	return events, !k.interrupted, err
}

func (k *keeper[V]) absorb() error {
	events, whole, err := k.take()
	if whole {
		k.hear(events)
	}
	return err
}

// catchUp begins to read the tree, where events may have been missed.
func (k *keeper[V]) catchUp(ctx context.Context) error {
	begun := time.Now()
	zxid, err := k.feed.Sync(ctx)
	if err != nil {
		return err
	}
	if err := k.caughtUp(zxid); err != nil {
		return err
	}
	k.heads = [2]head{{zxid, begun}}
	v := k.latest.Load()
	k.interrupted, k.resynced, k.doubted = false, v.zxid > 0, begun
	k.rounds.begin(v.root, zxid)
	return k.absorb()
}

// ask asks the server how far it is.
func (k *keeper[V]) ask(ctx context.Context) error {
	wanted, done, begun := k.next(), k.watch(), time.Now()
	zxid, err := k.feed.Sync(ctx)
	done()
	if err != nil {
		return err
	}
	events, whole, err := k.take()
	if err != nil || !whole {
		return err
	}
	k.answered(zxid, nil, nil, events)
	k.heads = [2]head{{zxid, begun}, k.heads[0]}
	if zxid < wanted {
		return errBehind // the transaction may be yet to come
	}
	return nil
}

// read plays a round.
func (k *keeper[V]) read(ctx context.Context) error {
	tasks := k.round(k.batch)
	done, begun := k.watch(), time.Now()
	zxid, answers, err := k.answers(ctx, tasks)
	k.late.took = time.Since(begun)
	done()
	if err != nil {
		k.failed()
		if errors.Is(err, errTooMuch) {
			return nil
		}
		return err
	}
	events, whole, err := k.take()
	if err != nil || !whole {
		k.failed()
		return err
	}
	if err := k.check(tasks, answers); err != nil {
		k.hear(events)
		k.failed()
		return err
	}
	refused := len(k.unreadable) > 0
	k.answered(zxid, tasks, answers, events)
	k.heads = [2]head{{zxid, begun}, k.heads[0]}
	if !refused && len(k.unreadable) > 0 {
		k.again = time.Now().Add(refusedWait)
	}
	k.large = k.large || len(k.doubts) > mostBatch
	for _, t := range tasks {
		if d := int64(k.depthOf(t.path)); k.limits.Depth >= 0 && d > int64(k.limits.Depth) && k.root.get(t.path) != nil {
			return &LimitError{What: "depth", Limit: int64(k.limits.Depth), Path: t.path}
		}
	}
	return k.exceeded(2)
}

// answers reads the nodes of a round, and returns its head. If the answers to one request are
// too large, the next round is smaller. One that is too large by itself is an answer.
func (k *keeper[V]) answers(ctx context.Context, tasks []task) (head int64, answers []inside.Answer, err error) {
	asks := make([]inside.Ask, len(tasks))
	for i, t := range tasks {
		asks[i] = inside.Ask{Path: t.path, Children: t.what == ofChildren, Missing: t.what == ofBirth}
	}
	head, answers, err = k.feed.Read(ctx, asks)
	switch {
	case err == nil:
	case !errors.Is(err, client.ErrReplyTooLarge):
		return 0, nil, fmt.Errorf("cache: read %s and %d other nodes: %w", tasks[0].path, len(tasks)-1, err)
	case len(tasks) > 1:
		k.batch = max(1, min(k.batch, len(tasks))/2)
		k.widest = len(tasks) / 2 // nodes that are known may have grown
		return 0, nil, errTooMuch
	default:
		// A sync says of which transaction the refusal is.
		if head, err = k.feed.Sync(ctx); err != nil {
			return 0, nil, err
		}
		delete(k.sent, tasks[0]) // an event before the sync is news
		answers = []inside.Answer{{Err: client.ErrReplyTooLarge}}
	}
	bytes := 0
	for _, a := range answers {
		bytes += len(a.Data)
	}
	k.resize(len(tasks), bytes)
	return head, answers, nil
}

// errTooMuch says that a round is to be smaller.
var errTooMuch = fmt.Errorf("cache: the answers are too large together: %w", client.ErrReplyTooLarge)

// check says what is wrong with answers that say nothing of the tree.
func (k *keeper[V]) check(tasks []task, answers []inside.Answer) (faults error) {
	const mostFaults = 3 // in the error
	faulty := 0
	for i, a := range answers {
		t := tasks[i]
		switch {
		case a.Err == nil, errors.Is(a.Err, zk.ErrNoNode), errors.Is(a.Err, zk.ErrNoAuth):
		case t.what == ofData && errors.Is(a.Err, client.ErrReplyTooLarge):
		case errors.Is(a.Err, client.ErrReplyTooLarge):
			return fmt.Errorf("cache: read %s: %w: %w", t.path, errLongList, a.Err)
		default:
			if faulty++; faulty <= mostFaults {
				faults = errors.Join(faults, fmt.Errorf("cache: read %s: %w", t.path, a.Err))
			}
		}
		if t.what == ofChildren && k.limits.Nodes > 0 && len(a.Names) > 2*k.limits.Nodes && k.filter == nil {
			return &LimitError{What: "nodes", Limit: int64(k.limits.Nodes), Path: t.path}
		}
	}
	if faulty > mostFaults {
		faults = errors.Join(faults, fmt.Errorf("cache: and %d other nodes", faulty-mostFaults))
	}
	return faults
}

// resize chooses the size of the next round.
func (k *keeper[V]) resize(n, bytes int) {
	k.widest = min(mostKnown, 2*k.widest)
	switch {
	case bytes > 2*batchBytes:
		k.batch = max(leastBatch, k.batch/2)
	case n >= k.batch && bytes < batchBytes/2:
		k.batch = min(k.mostBatch(), 2*k.batch)
	}
}

// mostBatch is how many nodes are read at most in one write. The nodes that come next may
// be as large as servers allow by default, which is 1 MiB. All answers to one write are
// in memory at once. So the answers to one write stay below the limit, or are leastBatch.
func (f *follower[V]) mostBatch() int {
	if f.limits.Bytes < 0 {
		return mostBatch
	}
	return int(min(max(f.limits.Bytes>>20, leastBatch), mostBatch))
}
