// Package watches_test follows a tree with persistent watches on real servers that
// are cut off and restarted, and looks for watches that were left behind.
package watches_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
)

const (
	root    = "/tree"
	nodes   = 4
	timeout = 6 * time.Second
)

func connect(ctx context.Context, t *testing.T, e *harness.Ensemble) *client.Client {
	t.Helper()
	c, err := client.Connect(ctx, e.ConnectString(), client.WithSessionTimeout(timeout),
		client.WithConnectTimeout(time.Minute), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// mirror follows the tree by its changes alone, and reads at each.
type mirror struct {
	t  *testing.T
	c  *client.Client
	in *client.Changes

	mu     sync.Mutex
	zxids  map[string]int64 // the newest write of each node
	missed int
	told   int
}

func (m *mirror) follow(ctx context.Context) {
	for change, err := range m.in.All() {
		if err != nil {
			m.t.Errorf("the watch ended: %v", err)
			return
		}
		paths := []string{change.Path}
		if change.Kind == client.ChangeMissed {
			paths = []string{root}
			for i := range nodes {
				paths = append(paths, node(i))
			}
		}
		m.mu.Lock()
		if change.Kind == client.ChangeMissed {
			m.missed++
		} else {
			m.told++
		}
		m.mu.Unlock()
		for _, p := range paths {
			m.read(ctx, p)
		}
	}
}

func (m *mirror) read(ctx context.Context, path string) {
	_, stat, err := m.c.Get(ctx, path)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.zxids[path] = stat.Mzxid
	case errors.Is(err, zk.ErrNoNode):
		delete(m.zxids, path)
	case ctx.Err() == nil:
		m.t.Errorf("read %s: %v", path, err)
	}
}

func node(i int) string { return root + "/n" + strconv.Itoa(i) }

// tree reads the tree by another client.
func tree(ctx context.Context, t *testing.T, c *client.Client) map[string]int64 {
	t.Helper()
	if err := c.Sync(ctx, root); err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for i := -1; i < nodes; i++ {
		path := node(i)
		if i < 0 {
			path = root
		}
		ok, stat, err := c.Exists(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			all[path] = stat.Mzxid
		}
	}
	return all
}

// write changes nodes until ctx ends. What fails is of no interest.
func write(ctx context.Context, c *client.Client) {
	for i := 0; ctx.Err() == nil; i++ {
		path := node(i * 7 % nodes)
		switch i % 5 {
		case 0, 1:
			_, _ = c.Create(ctx, path, nil)
		case 2:
			_ = c.Delete(ctx, path, client.AnyVersion)
		default:
			_, _ = c.Set(ctx, path, []byte(strconv.Itoa(i)), client.AnyVersion)
		}
		select {
		case <-time.After(time.Duration(i%9) * 5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// watched are the watches below root on all servers.
func watched(ctx context.Context, t *testing.T, e *harness.Ensemble) (all []string) {
	t.Helper()
	for _, n := range e.Nodes() {
		byPath, err := n.WatchesByPath(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for path, sessions := range byPath {
			if strings.HasPrefix(path, root) {
				all = append(all, fmt.Sprintf("%s on node %d by %x", path, n.ID(), sessions))
			}
		}
	}
	return all
}

// eventually asks until there is nothing to complain of.
func eventually(ctx context.Context, t *testing.T, what string, ask func() string) {
	t.Helper()
	limit := time.Now().Add(30 * time.Second)
	for {
		complaint := ask()
		if complaint == "" {
			return
		}
		if time.Now().After(limit) || ctx.Err() != nil {
			t.Fatalf("%s: %s", what, complaint)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// TestChangesOnServers cuts clients from each server, and restarts each, while a
// tree changes. Every follower ends up with the tree.
func TestChangesOnServers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	e := harness.StartEnsemble(ctx, t, 3)
	writer, c := connect(ctx, t, e), connect(ctx, t, e)
	if _, err := writer.Create(ctx, root, nil); err != nil {
		t.Fatal(err)
	}
	in, err := c.Watch(ctx, root, client.Recursive())
	if err != nil {
		t.Fatal(err)
	}
	m := &mirror{t: t, c: c, in: in, zxids: map[string]int64{}}
	var following sync.WaitGroup
	following.Go(func() { m.follow(ctx) })
	for _, n := range e.Nodes() {
		for name, fault := range map[string]func() error{
			"cut": func() error {
				if err := n.CutClients(ctx); err != nil {
					return err
				}
				time.Sleep(5 * time.Second)
				return n.RestoreClients(ctx)
			},
			"restart": func() error { return n.Restart(ctx) },
		} {
			busy, stop := context.WithCancel(ctx)
			var writing sync.WaitGroup
			writing.Go(func() { write(busy, writer) })
			time.Sleep(time.Second)
			if err := fault(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			stop()
			writing.Wait()
			if _, err := e.AwaitServing(ctx); err != nil {
				t.Fatal(err)
			}
			want := tree(ctx, t, writer)
			eventually(ctx, t, fmt.Sprintf("after %s of node %d", name, n.ID()), func() string {
				m.mu.Lock()
				defer m.mu.Unlock()
				if maps.Equal(want, m.zxids) {
					return ""
				}
				return fmt.Sprintf("the mirror has %v, the tree %v", m.zxids, want)
			})
		}
	}
	in.Close()
	following.Wait()
	t.Logf("%d changes told, %d times missed", m.told, m.missed)
	if m.missed < 2 || m.told < 50 { // at the beginning, and when its own server is hit
		t.Errorf("the faults tested too little")
	}
	nothingLeft(ctx, t, e)
}

func nothingLeft(ctx context.Context, t *testing.T, e *harness.Ensemble) {
	t.Helper()
	eventually(ctx, t, "watches without a reader", func() string { return strings.Join(watched(ctx, t, e), ", ") })
}

// TestWatchesAreRemoved gives up watches of every kind on a server that keeps one
// mode for each path.
func TestWatchesAreRemoved(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	e := harness.StartEnsemble(ctx, t, 1)
	c := connect(ctx, t, e)
	if _, err := c.Create(ctx, root, nil); err != nil {
		t.Fatal(err)
	}
	flat, err := c.Watch(ctx, root)
	if err != nil {
		t.Fatal(err)
	}
	deep, err := c.Watch(ctx, root, client.Recursive())
	if err != nil {
		t.Fatal(err)
	}
	_, _, get, err := c.GetW(ctx, root)
	if err != nil {
		t.Fatal(err)
	}
	_, _, exists, err := c.ExistsW(ctx, root+"/missing")
	if err != nil {
		t.Fatal(err)
	}
	_, _, children, err := c.ChildrenW(ctx, root)
	if err != nil {
		t.Fatal(err)
	}
	if left := watched(ctx, t, e); len(left) != 2 {
		t.Errorf("watches %v, want watches of %s and of a missing node", left, root)
	}
	// A one-shot watch must not have taken the place of the persistent ones.
	for range 3 {
		if _, err := c.Set(ctx, root, nil, client.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
	for name, in := range map[string]*client.Changes{"flat": flat, "recursive": deep} {
		for told := 0; told < 3; {
			change, err := in.Next(ctx)
			if err != nil {
				t.Fatalf("%s: %d of 3 changes: %v", name, told, err)
			}
			if change.Kind == client.ChangeData {
				told++
			}
		}
	}
	flat.Close()
	deep.Close()
	for _, w := range []*client.OneShotWatch{get, exists, children} {
		w.Stop()
	}
	nothingLeft(ctx, t, e)
	again, err := c.Watch(ctx, root)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Next(ctx); err != nil { // the first is always that changes were missed
		t.Error(err)
	}
	if _, err := again.Next(ctx); !errors.Is(err, client.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	nothingLeft(ctx, t, e)
}
