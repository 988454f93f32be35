package caches_test

import (
	"context"
	"embed"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/internal/zoodefs"
	"github.com/docent-go/docent/recipes/cache"
)

//go:embed python/*.py
var kazooCaches embed.FS

// couple is a tree that kazoo and Docent both change and both follow. Both have /space
// as the root of their paths: kazoo by a chroot, Docent by a namespace.
type couple struct {
	*testing.T
	ctx      context.Context
	kazoo    *peers.Script
	c        *client.Client
	tree     *cache.Tree[string]
	children *cache.Children[string]
	value    *cache.Value[string]
	nodes    map[string]string // what is there, by the path below the directory
}

func newCouple(ctx context.Context, t *testing.T, addr string) *couple {
	t.Helper()
	raw := connect(ctx, t, addr)
	for _, path := range []string{"/space", "/space/dir"} {
		if _, err := raw.Create(ctx, path, []byte("0")); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.Connect(ctx, addr, client.WithNamespace("space"), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	p := &couple{T: t, ctx: ctx, c: c, nodes: map[string]string{"": "0"}}
	p.kazoo = peers.StartKazooScript(ctx, t, kazooCaches, "python/caches.py", addr+"/space", "/dir")
	p.tree, err = cache.NewTree(c, "/dir", cache.Text)
	p.check(err)
	p.children, err = cache.NewChildren(c, "/dir", cache.Text)
	p.check(err)
	p.value, err = cache.NewValue(c, "/dir/value", cache.Text)
	p.check(err)
	for _, in := range []picture{p.tree, p.children, p.value} {
		p.check(in.Start(ctx))
		t.Cleanup(in.Close)
	}
	return p
}

func (p *couple) check(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// tell gives kazoo a command, whose words may have spaces, and returns its answer.
func (p *couple) tell(words ...string) string {
	p.Helper()
	p.check(p.kazoo.Tell(strings.Join(words, "\t")))
	said, err := p.kazoo.Next(p.ctx)
	p.check(err)
	rest, ok := strings.CutPrefix(said, "ok")
	if !ok {
		p.Fatalf("%v: %s", words, said)
	}
	return strings.TrimSpace(rest)
}

// change makes a node, sets it or deletes it, by kazoo or by Docent.
func (p *couple) change(verb, at, data string, byKazoo bool) {
	p.Helper()
	switch {
	case byKazoo:
		p.tell(slices.DeleteFunc([]string{verb, at, data}, func(word string) bool { return word == "" && verb == "delete" })...)
	case verb == "create":
		_, err := p.c.Create(p.ctx, "/dir"+at, []byte(data))
		p.check(err)
	case verb == "set":
		_, err := p.c.Set(p.ctx, "/dir"+at, []byte(data), client.AnyVersion)
		p.check(err)
	default:
		p.check(p.c.Delete(p.ctx, "/dir"+at, client.AnyVersion))
	}
	if p.nodes[at] = data; verb == "delete" {
		delete(p.nodes, at)
	}
}

// draw changes something that is there, or makes something that is not.
func (p *couple) draw(r *rand.Rand) {
	p.Helper()
	names := []string{"/value", "/a", "/a/b", "/a/b/c", "/a/d", "/value/e"}
	at, data, byKazoo := names[r.IntN(len(names))], strconv.Itoa(r.IntN(1000)), r.IntN(2) == 0
	_, there := p.nodes[at]
	_, above := p.nodes[strings.TrimSuffix(path.Dir(at), "/")]
	below := slices.ContainsFunc(slices.Collect(maps.Keys(p.nodes)), func(q string) bool { return strings.HasPrefix(q, at+"/") })
	switch {
	case !there && above:
		p.change("create", at, data, byKazoo)
	case there && !below && r.IntN(2) == 0:
		p.change("delete", at, "", byKazoo)
	case there:
		p.change("set", at, data, byKazoo)
	}
}

// same waits until every cache of kazoo's, and every cache of Docent's, has what is
// there.
func (p *couple) same() {
	p.Helper()
	var all, names []string
	for _, at := range slices.Sorted(maps.Keys(p.nodes)) {
		all = append(all, at+"="+p.nodes[at])
		if strings.Count(at, "/") == 1 {
			names = append(names, at[1:])
		}
	}
	value, there := p.nodes["/value"]
	if !there {
		value = "none"
	}
	p.tell("sees", strings.Join(all, " ")+"|"+strings.Join(names, " ")+"|"+value)
	_, now, err := p.c.CreateStat(p.ctx, "/mark", nil, client.Ephemeral(), client.Sequential())
	p.check(err)
	for _, in := range []picture{p.tree, p.children, p.value} {
		_, err := in.Wait(p.ctx, now.Czxid)
		p.check(err)
	}
	var ours []string
	for at, n := range p.tree.Snapshot().All() {
		ours = append(ours, strings.TrimPrefix(at, "/dir")+"="+n.Value)
	}
	slices.Sort(ours)
	slices.Sort(all)
	if !slices.Equal(ours, all) {
		p.Errorf("the Tree has %v, want %v", ours, all)
	}
	var children []string
	for name := range p.children.All() {
		children = append(children, name)
	}
	if !slices.Equal(children, names) {
		p.Errorf("the Children are %v, want %v", children, names)
	}
	if n, is := p.value.Get(); is != there || is && n.Value != value {
		p.Errorf("the Value is %q, %v, want %s", n.Value, is, value)
	}
}

// TestKazooCaches lets kazoo and Docent change a tree in turns. After each pause kazoo's
// TreeCache, ChildrenWatch and DataWatch and Docent's Tree, Children and Value have
// the same, also when connections were cut in between.
func TestKazooCaches(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	n := harness.StartServer(ctx, t)
	between := proxy.Start(t, n.Addr())
	p := newCouple(ctx, t, between.Addr())
	p.same()
	r := rand.New(rand.NewPCG(1, 0))
	for round := range 10 {
		for range 1 + r.IntN(20) {
			p.draw(r)
		}
		if round%3 == 2 {
			cut(ctx, t, between)
		}
		p.same()
	}
}

// cut ends the connections of both clients, and waits until both have new ones.
func cut(ctx context.Context, t *testing.T, between *proxy.Proxy) {
	t.Helper()
	const both = 2
	before := between.Stats().Requests[zoodefs.OpConnect]
	between.CutAll()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for between.Stats().Requests[zoodefs.OpConnect] < before+both {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the clients do not come back")
		}
	}
}

// TestForeignLayouts: a cache shows the nodes of other libraries as they are: their
// names, their bytes and their owner.
func TestForeignLayouts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := harness.StartServer(ctx, t)
	p := newCouple(ctx, t, n.Addr())
	kazoo, err := strconv.ParseInt(p.tell("recipes"), 10, 64)
	p.check(err)
	_, now, err := p.c.CreateStat(ctx, "/mark", nil, client.Ephemeral(), client.Sequential())
	p.check(err)
	snapshot, err := p.tree.Wait(ctx, now.Czxid)
	p.check(err)
	for dir, want := range map[string]string{
		"/dir/party": "member, kazoo", "/dir/lock": "holder, kazoo", "/dir/queue": "item, nobody",
	} {
		var got []string
		for _, n := range snapshot.Children(dir) {
			owner := map[int64]string{kazoo: "kazoo", 0: "nobody"}[n.EphemeralOwner]
			got = append(got, fmt.Sprintf("%s, %s", n.Value, owner))
		}
		if !slices.Equal(got, []string{want}) {
			t.Errorf("%s has %q, want %q", dir, got, want)
		}
	}
	if counter, _ := snapshot.Get("/dir/counter"); counter.Value != "7" {
		t.Errorf("the counter is %q", counter.Value)
	}
	if _, there := p.tree.Snapshot().Get("/space/dir"); there {
		t.Error("paths are those of the server and not of the namespace")
	}
}
