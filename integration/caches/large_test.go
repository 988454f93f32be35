package caches_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/cache"
)

// largeEnv is how many directories of a hundred nodes the large tree has, in place of
// usualDirectories. With more of them each cache is closed twenty times.
const largeEnv = "DOCENT_LARGE_DIRECTORIES"

const (
	usualDirectories = 100

	inDirectory = 99 // each with its directory is one transaction
	valueBytes  = 100
	perNode     = 300 // bytes that a cache may keep for a node, besides its data
)

// TestLargeTree reads a tree of 10,000 nodes, with both kinds of watches: several times
// faster than a loop that reads one node after the other, and within a bound of
// memory. One change costs a read, and a reconnection without changes less than a
// request for each directory, the third time too. No reconnection leaves a
// watch behind. Close of the cache costs the client neither
// its connection nor a hold.
func TestLargeTree(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	n := harness.StartServer(ctx, t, harness.WithHeap(512))
	writer := connect(ctx, t, n.Addr())
	directories, closes := usualDirectories, 1
	if text := os.Getenv(largeEnv); text != "" {
		var err error
		if directories, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		closes = 20
	}
	l := &large{T: t, n: n, writer: writer, raw: plant(ctx, t, writer, directories)}
	l.loop, l.nodes = readInTurn(ctx, t, n)
	if l.nodes != directories*(inDirectory+1)+1 {
		t.Fatalf("%d nodes", l.nodes)
	}
	t.Run("persistent", func(t *testing.T) { l.follow(ctx, t, 3, directories) })
	t.Run("one-shot", func(t *testing.T) { l.follow(ctx, t, 2, 2*l.nodes+1000, cache.WithOneShotWatches()) })
	for range closes {
		l.close(ctx)
		l.close(ctx, cache.WithOneShotWatches())
	}
}

// close closes a cache beside a mutex of the same client, whose sessions time out soon. The client
// stays connected, and holds the mutex. Reads are logged, and go on.
func (l *large) close(ctx context.Context, opts ...cache.Option) {
	l.Helper()
	var losses atomic.Int32
	c, err := client.Connect(ctx, l.n.Addr(), client.WithSessionTimeout(4*time.Second), client.WithLogger(slog.New(slog.DiscardHandler)),
		client.WithObserver(client.Observer{StateChange: func(now client.StateChange) {
			if now.State == client.Suspended || now.State == client.Lost {
				losses.Add(1)
			}
		}}))
	if err != nil {
		l.Fatal(err)
	}
	defer func() {
		if err := c.CloseContext(ctx); err != nil {
			l.Error(err)
		}
	}()
	m, err := recipes.NewInterProcessMutex(c, "/beside")
	if err != nil {
		l.Fatal(err)
	}
	hold, err := m.Acquire(ctx)
	if err != nil {
		l.Fatal(err)
	}
	tree, err := cache.NewTree(c, top, cache.Bytes, append(opts, cache.WithLimits(cache.Limits{Nodes: -1}))...)
	if err != nil {
		l.Fatal(err)
	}
	if err := tree.Start(ctx); err != nil {
		l.Fatal(err)
	}
	before := l.reads(ctx, c, time.Second)
	begun := time.Now()
	tree.Close()
	took := time.Since(begun)
	after := l.reads(ctx, c, 2*time.Second)
	l.Logf("%d nodes with %d options: Close in %v; a read takes %v before, and %v after", l.nodes, len(opts), took, before, after)
	if took > 2*time.Second || losses.Load() > 0 || hold.Context().Err() != nil {
		l.Errorf("Close in %v, %d connections lost, the hold: %v", took, losses.Load(), context.Cause(hold.Context()))
	}
	if err := hold.Release(ctx); err != nil {
		l.Error(err)
	}
}

// reads is the median of what reads take, one after the other.
func (l *large) reads(ctx context.Context, c *client.Client, long time.Duration) time.Duration {
	l.Helper()
	var all []time.Duration
	for begun := time.Now(); time.Since(begun) < long; {
		one := time.Now()
		if _, _, err := c.Get(ctx, "/beside"); err != nil {
			l.Fatal(err)
		}
		all = append(all, time.Since(one))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// large is a large tree, and what a loop takes that reads it.
type large struct {
	*testing.T
	n      *harness.Node
	writer *client.Client
	raw    int64 // bytes of paths and data
	loop   time.Duration
	nodes  int
}

// follow reads the tree with a cache and compares what that costs with the bounds: it is so many
// times as fast as the loop, and a reconnection may cost so many packets. With one-shot watches each
// node is read and listed.
func (l *large) follow(ctx context.Context, t *testing.T, times float64, packets int, opts ...cache.Option) {
	t.Helper()
	c := connect(ctx, t, l.n.Addr())
	before, others := heap(), l.watches(ctx, t)
	begun := time.Now()
	tree, err := cache.NewTree(c, top, cache.Bytes, append(opts, cache.WithLimits(cache.Limits{Nodes: -1}))...)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	snapshot := tree.Snapshot()
	took, used := time.Since(begun), heap()-before
	if snapshot.Len() != l.nodes {
		t.Errorf("%d nodes, want %d", snapshot.Len(), l.nodes)
	}
	watches := l.watches(ctx, t) - others
	change, reconnect := costs(ctx, t, l.n, l.writer, c, tree)
	for range 2 {
		_, again := costs(ctx, t, l.n, l.writer, c, tree)
		reconnect = max(reconnect, again)
	}
	later, kept := heap()-before, l.watches(ctx, t)-others
	t.Logf("read in %v, one by one %v; %d bytes, after reconnections %d, for %d nodes with %d bytes of paths and data; a change %d packets, a reconnection %d; %d watches, later %d",
		took.Round(time.Millisecond), l.loop.Round(time.Millisecond), used, later, l.nodes, l.raw, change, reconnect, watches, kept)
	if kept > watches+watches/100 {
		t.Errorf("%d watches, and %d after reconnections", watches, kept)
	}
	if took.Seconds()*times > l.loop.Seconds() {
		t.Errorf("read in %v, and one by one in %v", took, l.loop)
	}
	if most := l.raw*3/2 + perNode*int64(l.nodes); max(used, later) > most {
		t.Errorf("%d bytes, and %d after reconnections; want at most %d", used, later, most)
	}
	// The server counts its own probes and pings too.
	if change > 20 || reconnect > packets {
		t.Errorf("a change cost %d packets, a reconnection %d", change, reconnect)
	}
	runtime.KeepAlive(snapshot)
}

// watches is how many watches the server keeps, of data, children and persistent ones.
func (l *large) watches(ctx context.Context, t *testing.T) int {
	t.Helper()
	all, err := l.n.Mntr(ctx)
	if err != nil {
		t.Fatal(err)
	}
	count, err := strconv.Atoi(all["watch_count"])
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// plant makes the tree and returns the bytes of its paths and data.
func plant(ctx context.Context, t *testing.T, c *client.Client, directories int) (raw int64) {
	t.Helper()
	if _, err := c.Create(ctx, top, nil); err != nil {
		t.Fatal(err)
	}
	data := []byte(strings.Repeat("x", valueBytes))
	for d := range directories {
		dir := fmt.Sprintf("%s/d%d", top, d)
		ops := []client.Op{client.CreateOp(dir, nil)}
		raw += int64(len(dir))
		for i := range inDirectory {
			path := dir + "/n" + strconv.Itoa(i)
			ops = append(ops, client.CreateOp(path, data))
			raw += int64(len(path) + len(data))
		}
		if _, err := c.Multi(ctx, ops...); err != nil {
			t.Fatal(err)
		}
	}
	return raw
}

// readInTurn reads the tree with go-zookeeper as programs do: a list and a read, with
// a watch, for each node.
func readInTurn(ctx context.Context, t *testing.T, n *harness.Node) (took time.Duration, nodes int) {
	t.Helper()
	conn, _ := harness.Dial(ctx, t, 10*time.Second, n.Addr())
	begun := time.Now()
	var visit func(path string)
	visit = func(path string) {
		if _, _, _, err := conn.GetW(path); err != nil {
			t.Fatal(err)
		}
		names, _, _, err := conn.ChildrenW(path)
		if err != nil {
			t.Fatal(err)
		}
		nodes++
		for _, name := range names {
			visit(path + "/" + name)
		}
	}
	visit(top)
	return time.Since(begun), nodes
}

// costs are the packets that the server received for one change, and for a
// reconnection without any. The server's own probes and pings are among them.
func costs(ctx context.Context, t *testing.T, n *harness.Node, writer, c *client.Client, tree *cache.Tree[[]byte]) (change, reconnect int) {
	t.Helper()
	received := func() int {
		all, err := n.Mntr(ctx)
		if err != nil {
			t.Fatal(err)
		}
		count, err := strconv.Atoi(all["packets_received"])
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	before := received()
	stat, err := writer.Set(ctx, top+"/d7/n7", []byte("new"), client.AnyVersion)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Wait(ctx, stat.Mzxid); err != nil {
		t.Fatal(err)
	}
	change = received() - before
	before = received()
	if err := n.CutClients(ctx); err != nil {
		t.Fatal(err)
	}
	for tree.Synced() {
		time.Sleep(10 * time.Millisecond)
	}
	if err := n.RestoreClients(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Session(ctx); err != nil {
		t.Fatal(err)
	}
	return change, received() - before
}

// heap is how much memory is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
