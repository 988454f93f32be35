package bench_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/recipes"
)

const sessionTimeout = 10 * time.Second

var fields atomic.Int64

// directory makes a new directory for a lock.
func directory(b *testing.B, c *zk.Conn) string {
	b.Helper()
	dir := fmt.Sprintf("/bench%d", fields.Add(1))
	if _, err := c.Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		b.Fatal(err)
	}
	return dir
}

// docentLock is what this repository is about.
type docentLock struct {
	m    *recipes.InterProcessMutex
	hold *recipes.Hold
}

func (l *docentLock) acquire(ctx context.Context) (err error) {
	l.hold, err = l.m.Acquire(ctx)
	return err
}

func (l *docentLock) release(ctx context.Context) error { return l.hold.Release(ctx) }

// connect connects a client of Docent's.
func connect(ctx context.Context, b *testing.B, addr string) *client.Client {
	b.Helper()
	c, err := client.Connect(ctx, addr, client.WithSessionTimeout(sessionTimeout),
		client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionTimeout)
		defer cancel()
		_ = c.CloseContext(ctx) // nothing depends on it any more
	})
	return c
}

func docent(ctx context.Context, b *testing.B, addr string, w *workload) *field {
	b.Helper()
	f := &field{name: "docent"}
	clients := make([]*client.Client, w.sessions)
	for i := range clients {
		clients[i] = connect(ctx, b, addr)
	}
	dir := directory(b, clients[0].Conn())
	for i := range w.routines {
		m, err := recipes.NewInterProcessMutex(clients[i%w.sessions], dir)
		if err != nil {
			b.Fatal(err)
		}
		f.lockers = append(f.lockers, &docentLock{m: m})
	}
	return f
}

// conns connects go-zookeeper's own clients.
func conns(ctx context.Context, b *testing.B, addr string, w *workload) []*zk.Conn {
	b.Helper()
	all := make([]*zk.Conn, w.sessions)
	for i := range all {
		all[i], _ = harness.Dial(ctx, b, sessionTimeout, addr)
	}
	return all
}

// zkLocker is go-zookeeper's Lock.
type zkLocker struct{ *zk.Lock }

func (l zkLocker) acquire(context.Context) error { return l.Lock.Lock() }
func (l zkLocker) release(context.Context) error { return l.Unlock() }

func zkLock(ctx context.Context, b *testing.B, addr string, w *workload) *field {
	b.Helper()
	all := conns(ctx, b, addr, w)
	dir := directory(b, all[0])
	f := &field{name: "zklock"}
	for i := range w.routines {
		f.lockers = append(f.lockers, zkLocker{zk.NewLock(all[i%w.sessions], dir, zk.WorldACL(zk.PermAll))})
	}
	return f
}

// rawRequests is the requests of a free lock one after the other and nothing
// else: create, list, delete. Without the list they are the two round trips
// that ZooKeeper cannot spare.
type rawRequests struct {
	c    *zk.Conn
	dir  string
	list bool
	node string
}

func (r *rawRequests) acquire(context.Context) (err error) {
	r.node, err = r.c.Create(r.dir+"/lock-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	if err == nil && r.list {
		_, _, err = r.c.Children(r.dir)
	}
	return err
}

func (r *rawRequests) release(context.Context) error { return r.c.Delete(r.node, -1) }

func raw(ctx context.Context, b *testing.B, addr string, w *workload) *field {
	b.Helper()
	c := conns(ctx, b, addr, w)[0]
	return &field{"raw", []locker{&rawRequests{c: c, dir: directory(b, c), list: true}}}
}

func rawNoList(ctx context.Context, b *testing.B, addr string, w *workload) *field {
	b.Helper()
	c := conns(ctx, b, addr, w)[0]
	return &field{"raw-nolist", []locker{&rawRequests{c: c, dir: directory(b, c)}}}
}

// handOver is the floor of a queue: each has a node and a watch on the one
// before it, whose name all know without asking, and the event alone hands
// over. It is a lock only for those who never fail.
type handOver struct {
	c    *zk.Conn
	line *names
	node string
}

// names is who has which number.
type names struct {
	dir string

	mu    sync.Mutex // guards the rest
	known map[int]string
	told  map[int]chan struct{} // closed when the number is known
}

func (n *names) wait(seq int) string {
	n.mu.Lock()
	told, ok := n.told[seq]
	if !ok {
		told = make(chan struct{})
		n.told[seq] = told
	}
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
	told, ok := n.told[seq]
	if !ok {
		told = make(chan struct{})
		n.told[seq] = told
	}
	close(told)
	delete(n.known, seq-1000) // nobody asks for it any more
	delete(n.told, seq-1000)
}

func (h *handOver) acquire(context.Context) error {
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
	switch {
	case err == zk.ErrNoNode: //nolint:errorlint // go-zookeeper wraps nothing
		return nil
	case err != nil:
		return err
	}
	return (<-gone).Err
}

func (h *handOver) release(context.Context) error { return h.c.Delete(h.node, -1) }

func rawHandOver(ctx context.Context, b *testing.B, addr string, w *workload) *field {
	b.Helper()
	all := conns(ctx, b, addr, w)
	line := &names{dir: directory(b, all[0]), known: map[int]string{}, told: map[int]chan struct{}{}}
	f := &field{name: "raw-handover"}
	for i := range w.routines {
		f.lockers = append(f.lockers, &handOver{c: all[i%w.sessions], line: line})
	}
	return f
}
