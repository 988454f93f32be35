package caches_test

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/recipes/cache"
)

//go:embed java/*.java
var curatorCases embed.FS

// stage is a directory of a server, which a cache of Curator's and one of Docent's
// follow, each behind a proxy of its own.
type stage struct {
	*testing.T
	ctx  context.Context
	addr string // of the server
	root string
	w    *client.Client // which writes, without a proxy
	java *peers.Script
	// theirs and ours are the proxies.
	theirs, ours *proxy.Proxy
}

// perform plays the cases one after the other, with one process of Curator's.
func perform(t *testing.T, cases map[string]func(*stage)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	n := harness.StartServer(ctx, t)
	java := peers.StartCuratorScript(ctx, t, curatorCases, "Cases")
	w := connect(ctx, t, n.Addr())
	number := 0
	for name, play := range cases {
		number++
		root := fmt.Sprintf("/case%d", number)
		t.Run(name, func(t *testing.T) {
			s := &stage{
				T: t, ctx: ctx, addr: n.Addr(), root: root, w: w, java: java,
				theirs: proxy.Start(t, n.Addr()), ours: proxy.Start(t, n.Addr()),
			}
			s.create("", "0")
			play(s)
		})
	}
}

func (s *stage) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) create(path, data string) {
	s.Helper()
	_, err := s.w.Create(s.ctx, s.root+path, []byte(data))
	s.check(err)
}

func (s *stage) set(path, data string) {
	s.Helper()
	_, err := s.w.Set(s.ctx, s.root+path, []byte(data), client.AnyVersion)
	s.check(err)
}

func (s *stage) remove(path string) {
	s.Helper()
	s.check(s.w.Delete(s.ctx, s.root+path, client.AnyVersion))
}

// ask sends Curator a command and returns what it says behind "ok".
func (s *stage) ask(command string) string {
	s.Helper()
	said := s.try(command)
	rest, ok := strings.CutPrefix(said, "ok")
	if !ok {
		s.Fatalf("%s: %s", command, said)
	}
	return strings.TrimSpace(rest)
}

func (s *stage) try(command string) string {
	s.Helper()
	s.check(s.java.Tell(command))
	said, err := s.java.Next(s.ctx)
	s.check(err)
	return said
}

// curator connects Curator, whose client tries each request again so often, and opens
// a cache called c of this kind.
func (s *stage) curator(kind, path string, tries int) {
	s.Helper()
	s.ask(fmt.Sprintf("connect %s %d", s.theirs.Addr(), tries))
	s.ask("open c " + kind + " " + s.root + path)
}

// loaded is the same with a CuratorCache of the whole directory, once it is read.
func (s *stage) loaded() {
	s.Helper()
	const often = 100
	s.curator("curator", "", often)
	s.ask("await c initialized")
}

// get is what Curator's cache has.
func (s *stage) get(path string) string {
	s.Helper()
	return s.ask("get c " + s.root + path)
}

// heard are the events of Curator's cache, with paths below the directory.
func (s *stage) heard() string {
	s.Helper()
	return strings.ReplaceAll(s.ask("heard c"), s.root, "")
}

func (s *stage) await(event, path string) {
	s.Helper()
	s.ask("await c " + event + " " + s.root + path)
}

// docent opens a Tree of the directory, and waits until it is read.
func docent[V any](s *stage, codec cache.Codec[V]) *cache.Tree[V] {
	s.Helper()
	tree, err := cache.NewTree(connect(s.ctx, s.T, s.ours.Addr()), s.root, codec)
	s.check(err)
	s.check(tree.Start(s.ctx))
	s.Cleanup(tree.Close)
	return tree
}

// want compares the newest state of a Tree: "path=value" of each node, with paths
// below the directory.
func (s *stage) want(tree *cache.Tree[string], want string) {
	s.Helper()
	_, now, err := s.w.CreateStat(s.ctx, s.root+"-", nil, client.Ephemeral(), client.Sequential())
	s.check(err)
	snapshot, err := tree.Wait(s.ctx, now.Czxid)
	s.check(err)
	var all []string
	for path, n := range snapshot.All() {
		all = append(all, strings.TrimPrefix(path, s.root)+"="+n.Value)
	}
	if got := strings.Join(all, " "); got != want {
		s.Errorf("Docent has\n%s\nwant\n%s", got, want)
	}
}

// away does f while neither cache has a connection.
func (s *stage) away(f func()) {
	s.Helper()
	for _, p := range []*proxy.Proxy{s.theirs, s.ours} {
		p.Refuse(0)
		p.CutAll()
	}
	f()
	s.theirs.Accept()
	s.ours.Accept()
}

// passed waits until Curator has read what it had asked for before: it reads in order,
// and what an answer makes it read is before the second of two new nodes.
func (s *stage) passed(dir string) {
	s.Helper()
	for _, name := range []string{"/first", "/second"} {
		s.create(dir+name, "")
		s.await("node_created", dir+name)
	}
}

// until looks again and again whether something is so.
func (s *stage) until(what string, is func() bool) {
	s.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			s.Fatalf("not so, and time is up: %s", what)
		}
	}
}

// there reports whether the servers have the node.
func (s *stage) there(path string) bool {
	s.Helper()
	there, _, err := s.w.Exists(s.ctx, s.root+path)
	s.check(err)
	return there
}
