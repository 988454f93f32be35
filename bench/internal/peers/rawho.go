package peers

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/bench/internal/load"
)

// handOver is the floor of a queue. Each contender has a node, and a watch on the node
// before it, whose name all know without asking. The event alone hands over. handOver is
// a lock only among contenders that never fail.
type handOver struct {
	c    *zk.Conn
	line *names
	node string
}

// names is which contender has which number.
type names struct {
	dir string

	mu    sync.Mutex // guards the rest
	known map[int]string
	told  map[int]chan struct{} // closed when the number is known
}

// remembered is how many numbers are known at least, more than any line is long.
const remembered = 1 << 14

// channel returns what is closed when the number is known. The caller has the lock.
func (n *names) channel(seq int) chan struct{} {
	told, ok := n.told[seq]
	if !ok {
		told = make(chan struct{})
		n.told[seq] = told
	}
	return told
}

func (n *names) wait(seq int) string {
	n.mu.Lock()
	told := n.channel(seq)
	n.mu.Unlock()
	<-told
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.known[seq]
}

func (n *names) tell(seq int, node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known[seq] = node
	close(n.channel(seq))
	delete(n.known, seq-remembered)
	delete(n.told, seq-remembered)
}

// Acquire creates a node and waits until the one before it is gone.
func (h *handOver) Acquire(context.Context) error {
	node, err := h.c.Create(h.line.dir+"/lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	if err != nil {
		return err
	}
	h.node = node
	seq, err := strconv.Atoi(node[len(h.line.dir+"/lock-"):])
	if err != nil {
		return err
	}
	h.line.tell(seq, node)
	if seq == 0 {
		return nil
	}
	_, _, gone, err := h.c.GetW(h.line.wait(seq - 1))
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	return (<-gone).Err
}

// Release deletes the node.
func (h *handOver) Release(context.Context) error { return h.c.Delete(h.node, -1) }

func rawHandOver(spec *load.Spec) (*load.Field, error) {
	if !spec.Queued() || spec.Locks != 1 {
		return nil, ErrNoSuch
	}
	all, err := conns(spec)
	if err != nil {
		return nil, err
	}
	line := &names{dir: spec.Path(0), known: map[int]string{}, told: map[int]chan struct{}{}}
	for _, dir := range []string{spec.Root, line.dir} {
		if err := directory(all[0], dir); err != nil {
			return nil, err
		}
	}
	if err := synced(all, line.dir); err != nil {
		return nil, err
	}
	field := &load.Field{Close: closing(all)}
	for i := range spec.Contenders {
		field.Contenders = append(field.Contenders, load.Contender{Lock: &handOver{c: all[i%spec.Sessions], line: line}})
	}
	return field, nil
}
