package cache_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

// rig is a server in a bubble of virtual time, with two clients.
type rig struct {
	*testrig.Rig
	c *client.Client // whose links faults strike, and which caches use
	w *client.Client // which writes
}

func bubble(t *testing.T, f func(*rig), opts ...zktest.Option) {
	t.Helper()
	testrig.Bubble(t, func(r *testrig.Rig) { f(&rig{r, r.Connect("cache"), r.Connect("writer")}) }, opts...)
}

// everyWatch runs f with persistent watches, with one-shot watches on the same
// servers, and on servers that have no others.
func everyWatch(t *testing.T, f func(*rig, ...cache.Option)) {
	t.Helper()
	for name, tt := range map[string]struct {
		version zktest.Version
		opts    []cache.Option
	}{
		"persistent 3.9": {version: zktest.ZooKeeper39},
		"persistent 3.8": {version: zktest.ZooKeeper380},
		"one-shot 3.9":   {version: zktest.ZooKeeper39, opts: []cache.Option{cache.WithOneShotWatches()}},
		"3.5":            {version: zktest.ZooKeeper35},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) { f(r, tt.opts...) }, zktest.WithVersion(tt.version))
		})
	}
}

func (r *rig) create(path, data string) {
	r.Helper()
	_, err := r.w.Create(r.Ctx, path, []byte(data))
	r.Check(err)
}

func (r *rig) set(path, data string) {
	r.Helper()
	_, err := r.w.Set(r.Ctx, path, []byte(data), client.AnyVersion)
	r.Check(err)
}

func (r *rig) remove(path string) {
	r.Helper()
	r.Check(r.w.Delete(r.Ctx, path, client.AnyVersion))
}

// tree starts a cache of the tree at path.
func (r *rig) tree(path string, opts ...cache.Option) *cache.Tree[string] {
	r.Helper()
	t, err := cache.NewTree(r.c, path, cache.Text, opts...)
	r.Check(err)
	r.Cleanup(t.Close)
	r.Check(t.Start(r.Within(time.Minute)))
	return t
}

// text is what a snapshot has: "path=value" for each node.
func text(s *cache.Snapshot[string]) string {
	var all []string
	for path, n := range s.All() {
		all = append(all, path+"="+n.Value)
	}
	return strings.Join(all, " ")
}

// now is the text of t once it has seen everything.
func (r *rig) now(t *cache.Tree[string]) string {
	r.Helper()
	s, err := t.Wait(r.Within(time.Minute), r.Srv.Zxid())
	r.Check(err)
	return text(s)
}

func (r *rig) want(t *cache.Tree[string], want string) {
	r.Helper()
	if got := r.now(t); got != want {
		r.Errorf("the cache has\n%s\nwant\n%s", got, want)
	}
}

var ourFrames = regexp.MustCompile(`docent/recipes/cache\.`)

// wantNothingLeft checks that there is neither a goroutine of the package nor a watch.
func (r *rig) wantNothingLeft() {
	r.Helper()
	testrig.WantNoGoroutine(r.T, ourFrames)
	time.Sleep(10 * time.Second)
	r.WantNoWatch()
}
