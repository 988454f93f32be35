package peers

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/bench/internal/load"
)

// handOver is the floor of a queue. Each contender has a node, and a watch on the node
// that is so many before it, whose name follows from its own. The event alone hands over.
// handOver is a lock only among contenders that never fail.
//
// Of a semaphore of n each contender waits for the n-th before it. So there are n lines,
// and each release hands over to one contender by one event. Where one contender holds
// long, its line waits also while there is room: a semaphore would not.
//
// Of several locks one transaction makes the nodes, and another one deletes them. So all
// their queues have one order, and the first of them says who is next.
type handOver struct {
	rawNodes
	before int // whose end hands over: 1 is the one just before
}

// digits is how many ZooKeeper gives to the number in a name.
const digits = 10

// Acquire creates the nodes and waits until the one before them is gone.
func (h *handOver) Acquire(ctx context.Context) error {
	if err := h.rawNodes.Acquire(ctx); err != nil {
		return err
	}
	node := h.nodes[0]
	prefix := node[:len(node)-digits]
	number, err := strconv.Atoi(node[len(prefix):])
	if err != nil {
		return err
	}
	if number < h.before {
		return nil
	}
	_, _, gone, err := h.c.GetW(fmt.Sprintf("%s%0*d", prefix, digits, number-h.before))
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	return (<-gone).Err
}

func rawHandOver(spec *load.Spec) (*load.Field, error) {
	before := 1
	switch spec.Kind {
	case load.Mutex, load.Multi:
	case load.Semaphore:
		before = spec.Limit
	case load.ReadWrite, load.Counter, load.Promoted:
		before = 0
	}
	dirs := rawDirs(spec, 0)
	if before == 0 || spec.Locks != 1 || spec.Permits > 1 {
		return nil, ErrNoSuch
	}
	all, err := conns(spec)
	if err != nil {
		return nil, err
	}
	if err := directory(all[0], spec.Root); err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		if err := directory(all[0], dir); err != nil {
			return nil, err
		}
		if err := synced(all, dir); err != nil {
			return nil, err
		}
	}
	field := &load.Field{Close: closing(all)}
	for i := range spec.Contenders {
		lock := &handOver{rawNodes: rawNodes{c: all[i%spec.Sessions], dirs: dirs}, before: before}
		field.Contenders = append(field.Contenders, load.Contender{Lock: lock})
	}
	return field, nil
}
