package cache_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

type config struct{ Limit int }

type instance struct{ Addr string }

// The levels of these tests.
var (
	configs   = cache.NewLevel(configPath, cache.JSON[config]())
	instances = cache.NewLevel(instancePath, cache.JSON[instance]())
)

// typed starts a tree of levels.
func (r *rig) typed(levels cache.Levels, opts ...cache.Option) *cache.Tree[cache.Typed] {
	r.Helper()
	t, err := cache.NewTypedTree(r.c, levels, opts...)
	r.Check(err)
	r.Cleanup(t.Close)
	r.Check(t.Start(r.Within(time.Minute)))
	return t
}

// seen is the snapshot of t once it has seen everything.
func (r *rig) seen(t *cache.Tree[cache.Typed]) *cache.Snapshot[cache.Typed] {
	r.Helper()
	s, err := t.Wait(r.Within(time.Minute), r.Srv.Zxid())
	r.Check(err)
	return s
}

// nodesText is what a level finds in a snapshot: "parameters: value" for each node, with
// a mark at a value that is not that of the node.
func nodesText[T any](l *cache.Level[T], s *cache.Snapshot[cache.Typed], params ...string) string {
	var all []string
	for params, n := range l.All(s, params...) {
		one := fmt.Sprintf("%v: %v", params, n.Value)
		if n.Err != nil {
			one += "!"
		}
		all = append(all, one)
	}
	return strings.Join(all, ", ")
}

func (r *rig) same(what, got, want string) {
	r.Helper()
	if got != want {
		r.Errorf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

// told reads the changes of a typed tree on a goroutine of its own, and asks each level.
// The text ends it, and has each change that concerns no node, or a node of a level.
func (r *rig) told(t *cache.Tree[cache.Typed]) (text func() string) {
	var all []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for change, err := range t.Changes(r.Ctx) {
			if err != nil || errors.Is(change.State.Err, cache.ErrClosed) {
				return
			}
			c, isConfig := configs.Change(change)
			i, isInstance := instances.Change(change)
			switch {
			case isConfig && isInstance:
				r.Errorf("%v is of both levels", change)
			case isConfig:
				all = append(all, "config "+changeText(c))
			case isInstance:
				all = append(all, "instance "+changeText(i))
			case change.Path == "":
				all = append(all, change.Kind.String())
			}
		}
	}()
	return func() string {
		synctest.Wait() // the reader has read all
		t.Close()
		<-done
		return strings.Join(all, "\n")
	}
}

func changeText[T any](c cache.LevelChange[T]) string {
	value := func(n *cache.Node[T]) string {
		switch {
		case n == nil:
			return "-"
		case n.Err != nil:
			return fmt.Sprintf("%v!", n.Value)
		default:
			return fmt.Sprint(n.Value)
		}
	}
	return fmt.Sprintf("%v, %v: %s to %s, %v", c.Kind, c.Params, value(c.Old), value(c.New), c.Cause)
}

// A typed tree follows two levels, and tells of each change with its level, its
// parameters and both values.
func TestTypedTree(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		for _, path := range []string{"/apps", "/apps/orders", "/apps/orders/instances", "/apps/stock"} {
			r.create(path, "a parent")
		}
		r.create("/apps/orders/config", `{"Limit":3}`)
		tree := r.typed(cache.Levels{configs, instances}, opts...)
		if tree.Path() != "/apps" {
			r.Errorf("the tree is that of %s", tree.Path())
		}
		text := r.told(tree)
		synctest.Wait()
		for _, step := range []struct {
			do              func()
			config, members string
		}{
			{func() {}, "app=orders: {3}", ""},
			{func() { r.create("/apps/orders/instances/i1", `{"Addr":"a:1"}`) }, "app=orders: {3}", "app=orders id=i1: {a:1}"},
			{func() { r.create("/apps/orders/other", `{"Addr":"x"}`) }, "app=orders: {3}", "app=orders id=i1: {a:1}"},
			{func() { r.set("/apps/orders/config", `{"Limit":4}`) }, "app=orders: {4}", "app=orders id=i1: {a:1}"},
			{func() { r.set("/apps/orders/config", `4`) }, "app=orders: {4}!", "app=orders id=i1: {a:1}"},
			{func() { r.set("/apps/orders", `not seen`) }, "app=orders: {4}!", "app=orders id=i1: {a:1}"},
			{func() { r.set("/apps/orders/config", `{"Limit":5}`) }, "app=orders: {5}", "app=orders id=i1: {a:1}"},
			{func() { r.create("/apps/stock/config", `oops`) }, "app=orders: {5}, app=stock: {0}!", "app=orders id=i1: {a:1}"},
			{func() {
				_, err := r.w.Multi(r.Ctx, client.DeleteOp("/apps/orders/instances/i1", client.AnyVersion), client.CreateOp("/apps/orders/instances/i1", []byte(`{"Addr":"b:1"}`)),
					client.CreateOp("/apps/stock/instances", nil), client.CreateOp("/apps/stock/instances/i1", []byte(`{"Addr":"s:1"}`)))
				r.Check(err)
			}, "app=orders: {5}, app=stock: {0}!", "app=orders id=i1: {b:1}, app=stock id=i1: {s:1}"},
			{func() { r.remove("/apps/orders/config") }, "app=stock: {0}!", "app=orders id=i1: {b:1}, app=stock id=i1: {s:1}"},
		} {
			step.do()
			s := r.seen(tree)
			synctest.Wait()
			r.same("configs", nodesText(configs, s), step.config)
			r.same("instances", nodesText(instances, s), step.members)
		}
		s := tree.Snapshot()
		r.same("instances of stock", nodesText(instances, s, "stock"), "app=stock id=i1: {s:1}")
		r.same("one instance of stock", nodesText(instances, s, "stock", "i1"), "app=stock id=i1: {s:1}")
		r.same("instances of sto", nodesText(instances, s, "sto"), "")
		if n, there := instances.Get(s, "orders", "i1"); !there || n.Value.Addr != "b:1" || n.Path != "/apps/orders/instances/i1" || n.Err != nil {
			r.Errorf("%+v, %v", n, there)
		}
		for params := range instances.All(s) {
			r.same("the first instance", params.String(), "app=orders id=i1")
			break
		}
		r.same("what was told", text(), `began
instance created, app=orders id=i1: - to {a:1}, live
config updated, app=orders: {3} to {4}, live
config undecodable, app=orders: {4} to {4}!, live
config updated, app=orders: {4}! to {5}, live
config undecodable, app=stock: - to {0}!, live
instance recreated, app=orders id=i1: {a:1} to {b:1}, live
instance created, app=stock id=i1: - to {s:1}, live
config deleted, app=orders: {5} to -, live`)
		r.wantNothingLeft()
	})
}

// What one transaction writes to two levels shows together, in each snapshot and to each
// reader.
func TestTypedLevelsAreOfOneTransaction(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		for _, path := range []string{"/apps", "/apps/a", "/apps/a/instances"} {
			r.create(path, "")
		}
		r.create("/apps/a/config", `{"Limit":0}`)
		r.create("/apps/a/instances/i", `{"Addr":"0"}`)
		tree := r.typed(cache.Levels{configs, instances}, opts...)
		const last = 50
		var writer sync.WaitGroup
		writer.Go(func() {
			for n := 1; n <= last; n++ {
				_, err := r.w.Multi(r.Ctx,
					client.SetOp("/apps/a/config", fmt.Appendf(nil, `{"Limit":%d}`, n), client.AnyVersion),
					client.SetOp("/apps/a/instances/i", fmt.Appendf(nil, `{"Addr":"%d"}`, n), client.AnyVersion))
				if err != nil {
					r.Error(err)
				}
				if n%5 > 0 { // some in a row, and some that each make a snapshot
					time.Sleep(time.Duration(n) * time.Millisecond)
				}
			}
		})
		looks := 0
		for change, err := range tree.Changes(r.Within(time.Minute)) {
			r.Check(err)
			config, _ := configs.Get(change.Snapshot, "a")
			one, _ := instances.Get(change.Snapshot, "a", "i")
			if strconv.Itoa(config.Value.Limit) != one.Value.Addr {
				r.Errorf("snapshot %#x has %d and %s", change.Zxid, config.Value.Limit, one.Value.Addr)
			}
			if looks++; config.Value.Limit == last {
				break
			}
		}
		writer.Wait() // the answer may come behind the snapshot
		if looks < last/2 {
			r.Errorf("%d looks only", looks)
		}
	})
}

// The nodes that no level wants are neither read nor kept, and a change of one is no
// change. The nodes above a level are kept, and their data is not.
func TestTypedTreeReadsWhatLevelsWant(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		wanted := []string{
			"/apps", "/apps/a", "/apps/a/config", "/apps/a/instances", "/apps/a/instances/1", "/apps/a/instances/2", "/apps/b",
		}
		for _, path := range append(slices.Clone(wanted), "/apps/a/instances/1/lease", "/apps/a/instances/1/lease/x",
			"/apps/a/instances-old", "/apps/a/instances-old/1", "/apps/a/conf", "/apps/a/conf/config", "/apps/b/c", "/apps/b/c/instances", "/apps/b/c/instances/1") {
			r.create(path, `{}`)
		}
		r.Srv.ResetCounts()
		tree := r.typed(cache.Levels{configs, instances}, opts...)
		reads := 0 // by requests of many
		for _, q := range r.Srv.Log() {
			for _, path := range q.Paths {
				reads++
				if q.Op == zktest.OpMultiRead && !slices.Contains(wanted, path) {
					r.Errorf("the cache reads %s", path)
				}
			}
			switch {
			case q.Client != "cache" || !strings.HasPrefix(q.Path, "/apps"):
			case q.Op == zktest.OpGetData && !slices.Contains(wanted, q.Path):
				r.Errorf("the cache reads %s", q.Path)
			case q.Op == zktest.OpGetChildren2 && strings.HasPrefix(q.Path, "/apps/a/instances/"):
				r.Errorf("the cache lists %s, which has a child", q.Path)
			}
		}
		if n := reads + r.Srv.Count(zktest.OpGetData); n < len(wanted) {
			r.Errorf("%d reads, want %d", n, len(wanted))
		}
		var has []string
		for path, n := range tree.Snapshot().All() {
			has = append(has, path)
			if _, ok := configs.Match(path); !ok && strings.Count(path, "/") < 4 && n.Value != (cache.Typed{}) {
				r.Errorf("%s has the value %v", path, n.Value)
			}
		}
		if !slices.Equal(has, wanted) {
			r.Errorf("the tree has %v, want %v", has, wanted)
		}
		text := r.told(tree)
		synctest.Wait()
		r.Srv.ResetCounts()
		r.set("/apps/a/conf", "1")
		r.set("/apps/a/instances/1/lease", "1")
		r.create("/apps/b/x", "1")
		r.create("/apps/b/c/config", "1")
		r.remove("/apps/a/instances-old/1")
		before := tree.Snapshot()
		after := r.seen(tree)
		if n := r.Srv.Count(zktest.OpGetData) + r.Srv.Count(zktest.OpMultiRead); n > 0 {
			r.Errorf("%d reads of nodes that no level wants", n)
		}
		r.same("the tree", nodesText(configs, after)+nodesText(instances, after), nodesText(configs, before)+nodesText(instances, before))
		r.same("what was told", text(), "began")
	})
}

// The levels of a tree may be nested, may have no parameters, and may begin with a
// parameter. The tree is that of what they have in common.
func TestTypedTreeShapes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		patterns []cache.Pattern
		top      string
		want     string // the nodes of each level
	}{
		"one node":        {[]cache.Pattern{"/a/b"}, "/a/b", "/a/b"},
		"the root":        {[]cache.Pattern{"/"}, "/", "/"},
		"two nodes":       {[]cache.Pattern{"/a/b", "/a/c/d"}, "/a", "/a/b | /a/c/d"},
		"a node and more": {[]cache.Pattern{"/a", "/a/{x}"}, "/a", "/a | /a/b /a/b-x /a/c"},
		"a directory":     {[]cache.Pattern{"/a/{x}"}, "/a", "/a/b /a/b-x /a/c"},
		"nested":          {[]cache.Pattern{"/a/{x}", "/a/{x}/{y}", "/a/c/d/e"}, "/a", "/a/b /a/b-x /a/c | /a/b/d /a/b-x/d /a/c/d | /a/c/d/e"},
		"after":           {[]cache.Pattern{"/a/{x}/d"}, "/a", "/a/b/d /a/b-x/d /a/c/d"},
		"similar":         {[]cache.Pattern{"/a/b/{x}", "/a/b-x/{x}"}, "/a", "/a/b/d | /a/b-x/d"},
		"apart":           {[]cache.Pattern{"/a/c/{x}", "/b/{x}"}, "/", "/a/c/d | /b/d"},
		"from the root":   {[]cache.Pattern{"/{x}", "/{x}/c/{y}"}, "/", "/a /b | /a/c/d"},
		"nothing there":   {[]cache.Pattern{"/x/{y}", "/x/y/{z}"}, "/x", " | "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everyWatch(t, func(r *rig, opts ...cache.Option) {
				for _, path := range []string{"/a", "/a/b", "/a/b/d", "/a/b-x", "/a/b-x/d", "/a/c", "/a/c/d", "/a/c/d/e", "/b", "/b/d"} {
					r.create(path, path)
				}
				var levels cache.Levels
				for _, p := range tt.patterns {
					levels = append(levels, cache.NewLevel(p, cache.Text))
				}
				tree := r.typed(levels, opts...)
				var all []string
				for _, l := range levels {
					text, err := l.(*cache.Level[string])
					if !err {
						r.Fatal("no level")
					}
					var found []string
					for params, n := range text.All(tree.Snapshot()) {
						if match, ok := text.Match(n.Path); !ok || match.String() != params.String() || n.Value != n.Path && n.Path != "/" {
							r.Errorf("%s has %v, %q", n.Path, params, n.Value)
						}
						found = append(found, n.Path)
					}
					all = append(all, strings.Join(found, " "))
				}
				r.same("the levels", strings.Join(all, " | "), tt.want)
				r.same("the path", tree.Path(), tt.top)
			})
		})
	}
}

// A value that cannot be decoded leaves the last good one, or none with DropUndecodable.
// A codec that panics does the same. The error names the node.
func TestTypedUndecodable(t *testing.T) {
	t.Parallel()
	picky := cache.NewLevel("/n/{x}", func(data []byte) (string, error) {
		switch {
		case string(data) == "panic":
			panic("the codec's own words")
		case strings.HasPrefix(string(data), "bad"):
			return "garbage", errors.New("it is bad")
		}
		return string(data), nil
	})
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/n", "bad")
		r.create("/n/first", "bad")
		keep, drop := r.typed(cache.Levels{picky}, opts...), r.typed(cache.Levels{picky}, append(opts, cache.DropUndecodable())...)
		for _, tt := range []struct{ path, data, keep, drop string }{
			{"/n/x", "1", "1", "1"},
			{"/n/x", "bad", "1!", "!"},
			{"/n/x", "panic", "1!", "!"},
			{"/n/x", "2", "2", "2"},
			{"/n/first", "bad again", "!", "!"},
			{"/n/first", "1", "1", "1"},
		} {
			if _, ok := r.Srv.Node(tt.path); !ok {
				r.create(tt.path, "0")
			}
			r.set(tt.path, tt.data)
			for tree, want := range map[*cache.Tree[cache.Typed]]string{keep: tt.keep, drop: tt.drop} {
				n, there := picky.Get(r.seen(tree), strings.TrimPrefix(tt.path, "/n/"))
				got := n.Value
				var bad *cache.UndecodableError
				if errors.As(n.Err, &bad) {
					got += "!"
				}
				if !there || got != want {
					r.Errorf("%s after %q: %q, %v, want %q", tt.path, tt.data, got, n.Err, want)
				}
				if bad != nil && (bad.Path != tt.path || bad.Mzxid != n.Mzxid) {
					r.Errorf("%v is of %s", bad, tt.path)
				}
			}
		}
		if top, _ := keep.Snapshot().Root(); top.Err != nil {
			r.Errorf("no level decodes the node above: %v", top.Err)
		}
	})
}

// A codec runs once for each reading of a node of its level, and for no other node. Looks
// at snapshots and changes do not run it.
func TestTypedDecodesOnce(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		var calls []string // on the goroutine of the cache
		level := cache.NewLevel("/n/{x}", func(data []byte) (string, error) {
			calls = append(calls, string(data))
			return string(data), nil
		})
		for _, path := range []string{"/n", "/n/a", "/n/b", "/n/b/c"} {
			r.create(path, path)
		}
		tree := r.typed(cache.Levels{level}, opts...)
		for range 3 {
			go func() {
				for change, err := range tree.Changes(r.Ctx) {
					if err != nil {
						return
					}
					_, _ = level.Change(change)
					_, _ = level.Get(change.Snapshot, "a")
				}
			}()
		}
		for _, data := range []string{"1", "2"} {
			r.set("/n/a", data)
			r.set("/n", data)
			r.same("a and b", nodesText(level, r.seen(tree)), "x=a: "+data+", x=b: /n/b")
		}
		r.Srv.Client("cache").Cut()
		time.Sleep(time.Minute)
		tree.Close()
		slices.Sort(calls)
		r.same("what was decoded", strings.Join(calls, " "), "/n/a /n/b 1 2")
	})
}

// A node that may not be read is one of its level, with the reason.
func TestTypedUnreadable(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		r.create("/apps", "")
		r.create("/apps/a", "")
		_, err := r.w.Create(r.Ctx, "/apps/a/config", []byte(`{"Limit":1}`), client.ACL(zk.WorldACL(zk.PermAll&^zk.PermRead)...))
		r.Check(err)
		tree := r.typed(cache.Levels{configs, instances}, opts...)
		var unreadable *cache.UnreadableError
		if n, there := configs.Get(tree.Snapshot(), "a"); !there || n.Value.Limit != 0 || !errors.As(n.Err, &unreadable) {
			r.Errorf("%+v, %v", n, there)
		}
		_, err = r.w.SetACL(r.Ctx, "/apps/a/config", zk.WorldACL(zk.PermAll), client.AnyVersion)
		r.Check(err)
		time.Sleep(time.Minute)
		if n, there := configs.Get(r.seen(tree), "a"); !there || n.Value.Limit != 1 || n.Err != nil {
			r.Errorf("%+v, %v", n, there)
		}
	})
}

// After a reconnection the changes of all levels are told once, with their cause.
func TestTypedReconnection(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		for _, path := range []string{"/apps", "/apps/a", "/apps/a/instances", "/apps/a/junk"} {
			r.create(path, "")
		}
		r.create("/apps/a/config", `{"Limit":1}`)
		r.create("/apps/a/instances/1", `{"Addr":"1"}`)
		tree := r.typed(cache.Levels{configs, instances}, opts...)
		text := r.told(tree)
		synctest.Wait()
		link := r.Srv.Client("cache")
		link.Refuse()
		link.Cut()
		time.Sleep(time.Second)
		if n, there := configs.Get(tree.Snapshot(), "a"); !there || n.Value.Limit != 1 || tree.State().Phase != cache.Stale {
			r.Errorf("without a connection: %+v, %v, %v", n, there, tree.State())
		}
		r.set("/apps/a/config", `{"Limit":2}`)
		r.remove("/apps/a/instances/1")
		r.create("/apps/a/instances/2", `{"Addr":"2"}`)
		r.set("/apps/a/junk", "1")
		link.Accept()
		_, err := tree.WaitSynced(r.Within(time.Minute))
		r.Check(err)
		r.same("what was told", text(), `began
stale
config updated, app=a: {1} to {2}, resync
instance deleted, app=a id=1: {1} to -, resync
instance created, app=a id=2: - to {2}, resync
synced`)
		if n, there := configs.Get(tree.Snapshot(), "a"); !there || n.Value.Limit != 2 {
			r.Errorf("after Close: %+v, %v", n, there)
		}
	})
}

// A filter of the program leaves out more than the levels do, and never less. A depth
// leaves out nothing. The slice of options stays the caller's.
func TestTypedTreeOptions(t *testing.T) {
	t.Parallel()
	everyWatch(t, func(r *rig, opts ...cache.Option) {
		for _, path := range []string{"/apps", "/apps/a", "/apps/a/instances", "/apps/a/junk", "/apps/b", "/apps/b/instances"} {
			r.create(path, "")
		}
		r.create("/apps/a/instances/1", `{"Addr":"1"}`)
		r.create("/apps/b/instances/1", `{"Addr":"2"}`)
		own := append(make([]cache.Option, 0, 8), cache.WithDepth(1), cache.WithFilter(func(path string) bool { return path != "/apps/b" }))
		own = append(own, opts...)
		tree := r.typed(cache.Levels{instances}, own...)
		r.same("instances", nodesText(instances, tree.Snapshot()), "app=a id=1: {1}")
		if own[:cap(own)][len(own)] != nil {
			r.Error("the options of the caller have changed")
		}
		if n := tree.Snapshot().Len(); n != 4 {
			r.Errorf("the tree has %d nodes", n)
		}
		_, err := cache.NewTypedTree(r.c, cache.Levels{instances}, cache.WithDepth(-1))
		if err == nil {
			r.Error("a wrong option is no error")
		}
	})
}

// The tree of the servers' own root lacks /zookeeper, so a level there would stay empty.
func TestTypedTreeOfReservedNodes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		reserved := cache.NewLevel("/zookeeper/{x}", cache.Bytes)
		if _, err := cache.NewTypedTree(r.c, cache.Levels{reserved, configs}); err == nil || !strings.Contains(err.Error(), "leaves out /zookeeper") {
			r.Errorf("two levels: %v", err)
		}
		tree := r.typed(cache.Levels{reserved})
		for _, name := range []string{"config", "quota"} {
			_, node := r.Srv.Node("/zookeeper/" + name)
			if _, there := reserved.Get(tree.Snapshot(), name); there != node {
				r.Errorf("%s is there: %v, want %v", name, there, node)
			}
		}
		r.create("/chroot", "")
		c := r.Connect("below", client.WithNamespace("chroot"))
		if _, err := cache.NewTypedTree(c, cache.Levels{reserved, configs}); err != nil {
			r.Errorf("below a namespace: %v", err)
		}
	})
}

// Parameters from outside reach no node of another level. A wrong number of them is a
// fault of the program.
func TestTypedParametersOfNoNode(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		x := cache.NewLevel("/x/{a}", cache.Text)
		y := marked("/x/{a}/{b}", "never there")
		z := cache.NewLevel("/x/{a}/{b}/c", cache.Text)
		for _, path := range []string{"/x", "/x/1", "/x/1/2", "/x/1/2/c"} {
			r.create(path, path)
		}
		tree := r.typed(cache.Levels{x, y, z})
		s := tree.Snapshot()
		for _, name := range []string{"1/2", "", "/1", "1/", "1/2/c", ".", "..", "../x/1", "2", "\x00"} {
			if n, there := x.Get(s, name); there {
				r.Errorf("Get of %q: %s", name, n.Path)
			}
			for _, n := range x.All(s, name) {
				r.Errorf("All of %q: %s", name, n.Path)
			}
			for _, n := range y.All(s, name) {
				r.Errorf("All of %q: %s", name, n.Path)
			}
			for _, n := range z.All(s, name) {
				r.Errorf("All of %q: %s", name, n.Path)
			}
		}
		panics := func(want string, f func()) {
			r.Helper()
			defer func() {
				if p := fmt.Sprint(recover()); p != want {
					r.Errorf("panic %q, want %q", p, want)
				}
			}()
			f()
		}
		panics("cache: Get of level /x/{a}/{b} with 1 parameters, want 2", func() { y.Get(s, "1") })
		panics("cache: Get of level /x/{a} with 2 parameters, want 1", func() { x.Get(s, "1", "2") })
		panics("cache: All of level /x/{a} with 2 parameters, want at most 1", func() { x.All(s, "1", "2") })
	})
}

// A level that a tree was made without finds nothing there, also if another one has its
// pattern.
func TestTypedLevelOfAnotherTree(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.create("/apps", "")
		r.create("/apps/a", "")
		r.create("/apps/a/config", `{"Limit":1}`)
		tree := r.typed(cache.Levels{configs})
		s := tree.Snapshot()
		same := cache.NewLevel(configPath, cache.JSON[config]())
		above := cache.NewLevel("/apps/{app}", cache.Text)
		text := cache.NewLevel(configPath, cache.Text)
		if found := nodesText(same, s) + nodesText(above, s) + nodesText(text, s); found != "" {
			r.Errorf("found %s", found)
		}
		for change, err := range tree.Changes(r.Within(time.Minute)) {
			r.Check(err)
			if _, ours := same.Change(change); ours {
				r.Errorf("%v", change)
			}
			if c, ours := configs.Change(change); ours {
				if c.New == nil || c.New.Value.Limit != 2 || c.Old.Value.Limit != 1 {
					r.Errorf("%+v", c)
				}
				r.same("the text", fmt.Sprint(c), fmt.Sprintf("updated /apps/a/config, live, zxid %d", change.Zxid))
				break
			}
			r.set("/apps/a/config", `{"Limit":2}`)
		}
		two := r.typed(cache.Levels{configs}) // a level may be in many trees
		r.same("in another tree", nodesText(configs, two.Snapshot()), "app=a: {2}")
	})
}

// A node of a level has everything that the node of another cache has.
func TestTypedNodeIsWhole(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		level := cache.NewLevel("/n/{x}", cache.Text)
		r.create("/n", "")
		time.Sleep(time.Second)
		_, err := r.w.Create(r.Ctx, "/n/x", []byte("one"), client.Ephemeral())
		r.Check(err)
		time.Sleep(time.Second)
		r.set("/n/x", "two")
		plain, _ := r.tree("/n").Snapshot().Get("/n/x")
		typed, _ := level.Get(r.typed(cache.Levels{level}).Snapshot(), "x")
		of := reflect.ValueOf(plain)
		for i := range of.NumField() {
			if name := of.Type().Field(i).Name; of.Field(i).IsZero() && name != "Err" {
				r.Errorf("%s is zero, so it shows nothing", name)
			}
		}
		if plain != typed {
			r.Errorf("%+v\nwant\n%+v", typed, plain)
		}
	})
}
