package caches_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/internal/zoodefs"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// TestCuratorCases shows faults of Curator's caches with Curator 5.4 on a real server,
// and beside each what Docent's cache does. recipes/cache has tests of the same faults
// with every kind of watch. A case that fails where it says "Curator" is good news: a
// newer Curator has mended it, and the case is to go.
func TestCuratorCases(t *testing.T) {
	perform(t, map[string]func(*stage){
		"the same version":            sameVersion,
		"the same cversion":           sameCversion,
		"initialized with holes":      initializedWithHoles,
		"not readable at first":       unreadable,
		"damaged data":                damaged,
		"half of a transaction":       halfOfTransaction,
		"nothing says caught up":      notCaughtUp,
		"all descendants":             descendants,
		"the parents come again":      parents,
		"forgotten at close":          forgotten,
		"one listener blocks all":     blocked,
		"no addWatch":                 noAddWatch,
		"a walk after the last child": walk,
	})
}

// sameVersion: a node that is made again with the same version is not reported.
func sameVersion(s *stage) {
	s.create("/a", "old")
	s.loaded()
	tree := docent(s, cache.Text)
	began, recreated := make(chan struct{}), make(chan cache.Kind, 1)
	go func() {
		for change, err := range tree.Changes(s.ctx) {
			if change.Kind == cache.Began && err == nil {
				close(began)
			}
			if err != nil || change.Path != "" {
				recreated <- change.Kind
				return
			}
		}
	}()
	<-began
	s.away(func() {
		s.remove("/a")
		s.create("/a", "new")
	})
	s.ask("holds c " + s.root + "/a new")
	s.passed("")
	if got := s.heard(); strings.Contains(got, "node_changed /a") || strings.Count(got, "node_created /a") != 1 {
		s.Errorf("Curator tells: %s", got)
	}
	if got := <-recreated; got != cache.Recreated {
		s.Errorf("Docent tells of %v", got)
	}
}

// sameCversion: the children of a directory that is made again are never seen.
func sameCversion(s *stage) {
	s.create("/d", "old")
	s.create("/d/x", "")
	s.loaded()
	tree := docent(s, cache.Text)
	s.away(func() {
		s.remove("/d/x")
		s.remove("/d")
		s.create("/d", "new")
		s.create("/d/y", "")
	})
	s.ask("holds c " + s.root + "/d new")
	s.passed("")
	s.away(func() { s.set("", "again") })
	s.ask("holds c " + s.root + " again")
	s.passed("/first")
	if got := s.get("/d/y"); got != "-" {
		s.Errorf("Curator has the new child: %q", got)
	}
	s.want(tree, "=again /d=new /d/y= /first= /first/first= /first/second= /second=")
}

// initializedWithHoles: reads that have failed count as done, and are not done again.
func initializedWithHoles(s *stage) {
	for _, path := range []string{"/a", "/b", "/b/c"} {
		s.create(path, "")
	}
	for _, p := range []*proxy.Proxy{s.theirs, s.ours} {
		p.On(proxy.Match{Path: s.root + "/b", Where: readsData}, proxy.CutBefore, func(proxy.Request) { p.Refuse(0) })
	}
	s.curator("curator", "", 0)
	s.ask("await c initialized")
	if got := s.get("/b"); got != "-" {
		s.Errorf("Curator has the node that it could not read: %q", got)
	}
	s.theirs.Accept()
	s.set("", "again")
	s.ask("holds c " + s.root + " again")
	s.passed("/a")
	if got := s.get("/b"); got != "-" {
		s.Errorf("Curator has read the node again: %q", got)
	}
	s.want(s.lossy(), "=again /a= /a/first= /a/second= /b= /b/c=")
}

// readsData reports whether a request reads the data of a node, or of several.
func readsData(r proxy.Request) bool { return r.Op == zoodefs.OpGetData || r.Op == zoodefs.OpMultiRead }

// lossy opens a Tree whose first read of /b loses its connection for a while.
func (s *stage) lossy() *cache.Tree[string] {
	s.Helper()
	tree, err := cache.NewTree(connect(s.ctx, s.T, s.ours.Addr()), s.root, cache.Text, cache.WithLazyStart())
	s.check(err)
	s.check(tree.Start(s.ctx))
	s.Cleanup(tree.Close)
	s.until("Docent has lost its connection", func() bool { return tree.State().Err != nil })
	if tree.Synced() || tree.Snapshot().Len() > 0 {
		s.Errorf("Docent shows a tree with holes: %v", tree.State())
	}
	s.ours.Accept()
	_, err = tree.WaitSynced(s.ctx)
	s.check(err)
	return tree
}

// unreadable: a node that may not be read is left out with all below it, for good.
func unreadable(s *stage) {
	s.create("/a", "")
	_, err := s.w.Create(s.ctx, s.root+"/b", []byte("b"), client.ACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
	s.check(err)
	s.create("/b/c", "c")
	s.loaded()
	tree := docent(s, cache.Text)
	var refused *cache.UnreadableError
	if n, there := tree.Snapshot().Get(s.root + "/b"); there && !errors.As(n.Err, &refused) {
		s.Errorf("Docent has %+v", n)
	}
	_, err = s.w.SetACL(s.ctx, s.root+"/b", zk.WorldACL(zk.PermAll), client.AnyVersion)
	s.check(err)
	s.away(func() { s.set("", "again") })
	s.ask("holds c " + s.root + " again")
	s.passed("/a")
	if b, c := s.get("/b"), s.get("/b/c"); b != "-" || c != "-" {
		s.Errorf("Curator has %q and %q", b, c)
	}
	s.until("Docent has the node that may be read now", func() bool {
		c, _ := tree.Snapshot().Get(s.root + "/b/c")
		return c.Value == "c"
	})
}

func zipped(t *stage, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	t.check(err)
	t.check(w.Close())
	return b.String()
}

// unzip is the codec of what Curator writes with compressed().
func unzip(data []byte) (string, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), err
}

// damaged: with COMPRESSED_DATA a node that cannot be unpacked hides all below it.
func damaged(s *stage) {
	s.set("", zipped(s, "0"))
	s.create("/a", zipped(s, "a"))
	s.create("/b", "no gzip")
	s.create("/b/c", zipped(s, "c"))
	s.curator("compressed", "", 1)
	s.ask("await c initialized")
	if a, b, c := s.get("/a"), s.get("/b"), s.get("/b/c"); a != "a" || b != "-" || c != "-" {
		s.Errorf("Curator has %q, %q and %q", a, b, c)
	}
	tree := docent(s, unzip)
	s.want(tree, "=0 /a=a /b= /b/c=c")
	var bad *cache.UndecodableError
	if n, _ := tree.Snapshot().Get(s.root + "/b"); !errors.As(n.Err, &bad) {
		s.Errorf("Docent has %+v", n)
	}
}

// halfOfTransaction: one write of a transaction is there, and the other not yet.
func halfOfTransaction(s *stage) {
	s.create("/a", "0")
	s.create("/b", "0")
	s.loaded()
	tree := docent(s, cache.Text)
	var held []*proxy.Rule
	for _, p := range []*proxy.Proxy{s.theirs, s.ours} {
		held = append(held, p.On(proxy.Match{Path: s.root + "/b", Where: readsData}, proxy.StallRequests))
	}
	results, err := s.w.Multi(s.ctx, client.SetOp(s.root+"/a", []byte("1"), client.AnyVersion), client.SetOp(s.root+"/b", []byte("1"), client.AnyVersion))
	s.check(err)
	s.ask("holds c " + s.root + "/a 1")
	if got := s.get("/b"); got != "0" {
		s.Errorf("Curator has both writes: %q", got)
	}
	_, err = held[1].Await(s.ctx)
	s.check(err)
	a, _ := tree.Snapshot().Get(s.root + "/a")
	if b, _ := tree.Snapshot().Get(s.root + "/b"); a.Value != b.Value {
		s.Errorf("Docent has %q and %q", a.Value, b.Value)
	}
	s.theirs.Resume()
	s.ours.Resume()
	_, err = tree.Wait(s.ctx, results[1].Stat.Mzxid)
	s.check(err)
	s.want(tree, "=0 /a=1 /b=1")
}

// notCaughtUp: there is no sign of the lost connection, and none that the cache has
// caught up.
func notCaughtUp(s *stage) {
	s.loaded()
	tree := docent(s, cache.Text)
	var phases []cache.Phase
	s.away(func() {
		s.until("Docent is stale", func() bool { return !tree.Synced() })
		phases = append(phases, tree.State().Phase)
		s.create("/a", "")
	})
	s.await("node_created", "/a")
	s.passed("")
	if got := s.heard(); got != "node_created , initialized, node_created /a, node_created /first, node_created /second" {
		s.Errorf("Curator tells: %s", got)
	}
	s.want(tree, "=0 /a= /first= /second=")
	if phases = append(phases, tree.State().Phase); phases[0] != cache.Stale || phases[1] != cache.Synced {
		s.Errorf("Docent was %v", phases)
	}
}

// descendants: the listener of a PathChildrenCache is told of all nodes below.
func descendants(s *stage) {
	s.create("/a", "")
	s.create("/a/b", "")
	const often = 100
	s.curator("adapted", "", often)
	s.await("child_added", "/a/b")
	children, err := cache.NewChildren(connect(s.ctx, s.T, s.ours.Addr()), s.root, cache.Text)
	s.check(err)
	s.check(children.Start(s.ctx))
	defer children.Close()
	snapshot := children.Snapshot()
	if _, there := snapshot.Get(s.root + "/a/b"); there || snapshot.Len() != 2 {
		s.Errorf("Docent has %d nodes", snapshot.Len())
	}
}

// parents: CURATOR-319. A cache of a node makes its parents, again and again.
func parents(s *stage) {
	const often = 100
	s.curator("node", "/p/q/value", often)
	s.until("Curator has made the parents", func() bool { return s.there("/p/q") })
	value, err := cache.NewValue(connect(s.ctx, s.T, s.ours.Addr()), s.root+"/r/value", cache.Text)
	s.check(err)
	s.check(value.Start(s.ctx))
	defer value.Close()
	if s.there("/r") {
		s.Error("Docent has made a parent")
	}
	s.create("/p/q/value", "v")
	s.ask("holds c " + s.root + "/p/q/value v")
	s.remove("/p/q/value")
	s.ask("holds c " + s.root + "/p/q/value -")
	s.remove("/p/q")
	s.away(func() {})
	s.until("Curator has made the parent again", func() bool { return s.there("/p/q") })
}

// forgotten: the data is gone from the cache when it is closed.
func forgotten(s *stage) {
	s.create("/a", "a")
	s.loaded()
	tree := docent(s, cache.Text)
	if got := s.get("/a"); got != "a" {
		s.Errorf("before close Curator has %q", got)
	}
	s.ask("close c")
	if got := s.get("/a"); got != "-" {
		s.Errorf("after close Curator has %q", got)
	}
	tree.Close()
	if n, _ := tree.Snapshot().Get(s.root + "/a"); n.Value != "a" {
		s.Errorf("after Close Docent has %+v", n)
	}
}

// blocked: a listener that blocks keeps the listeners of all caches of its client.
func blocked(s *stage) {
	s.loaded()
	s.ask("open other curator " + s.root)
	s.ask("await other initialized")
	s.ask("block c")
	s.create("/a", "a")
	s.await("node_created", "/a")
	s.ask("holds other " + s.root + "/a a")
	s.create("/b", "b")
	s.ask("holds other " + s.root + "/b b")
	if got := s.ask("heard other"); strings.Contains(got, "/b") {
		s.Errorf("the other listener of Curator's was told: %s", got)
	}
	s.ask("release c")
	s.ask("await other node_created " + s.root + "/b")
}

// noAddWatch: a server without addWatch ends the connection at each. Curator asks again
// at once on the next connection, so it never comes to rest.
func noAddWatch(s *stage) {
	srv := zktest.NewServer(s.T, zktest.WithListen("127.0.0.1:0"), zktest.WithVersion(zktest.ZooKeeper35))
	s.ask("connect " + srv.Addr() + " 1")
	s.ask("open c curator /")
	const many = 4
	s.until("Curator has asked again and again", func() bool { return srv.Count(zktest.OpAddWatch) >= many })
	if got := s.ask("heard c"); strings.Contains(got, "initialized") {
		s.Errorf("Curator has read the tree: %s", got)
	}
	s.ask("close c")
	s.ask("connect " + s.addr + " 1") // which ends the loop
	srv.ResetCounts()
	tree, err := cache.NewTree(connect(s.ctx, s.T, srv.Addr()), "/", cache.Text)
	s.check(err)
	s.check(tree.Start(s.ctx))
	defer tree.Close()
	if n := srv.Count(zktest.OpAddWatch); n > 1 {
		s.Errorf("Docent has asked %d times", n)
	}
}

// walk: issue 1302. The iterator of a TreeCache fails once a node has lost its last child.
func walk(s *stage) {
	s.create("/a", "")
	s.create("/a/b", "")
	const often = 100
	s.curator("tree", "", often)
	s.ask("await c initialized")
	tree := docent(s, cache.Text)
	s.remove("/a/b")
	s.await("node_removed", "/a/b")
	// Curator tells of the removal first, and then takes the child from the list of its parent.
	s.until("Curator's walk fails", func() bool {
		return strings.HasPrefix(s.try("walk c"), "error java.util.NoSuchElementException")
	})
	s.want(tree, "=0 /a=")
}
