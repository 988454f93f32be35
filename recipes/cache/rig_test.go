package cache_test

import (
	"context"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/zktest"
)

const sessionTimeout = 10 * time.Second

// rig is a server in a bubble of virtual time.
type rig struct {
	*testing.T
	srv *zktest.Server
	ctx context.Context
	c   *client.Client // whose links faults strike, and which caches use
	w   *client.Client // which writes
}

func bubble(t *testing.T, f func(*rig), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r := &rig{T: t, ctx: ctx, srv: zktest.NewServer(t, append([]zktest.Option{
			zktest.WithTick(time.Second), zktest.WithLatency(50*time.Microsecond, time.Millisecond),
		}, opts...)...)}
		r.c, r.w = r.connect("cache"), r.connect("writer")
		f(r)
	})
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

func (r *rig) connect(name string, opts ...client.Option) *client.Client {
	r.Helper()
	c, err := client.Connect(r.ctx, "zk", append([]client.Option{
		client.WithSessionTimeout(sessionTimeout),
		client.WithDialer(r.srv.Client(name).DialContext),
		client.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	r.check(err)
	r.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), time.Minute)
		defer cancel()
		_ = c.CloseContext(ctx) // the test looks at what matters to it
	})
	return c
}

func (r *rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(r.ctx, d)
	r.Cleanup(cancel)
	return ctx
}

func (r *rig) create(path, data string) {
	r.Helper()
	_, err := r.w.Create(r.ctx, path, []byte(data))
	r.check(err)
}

func (r *rig) set(path, data string) {
	r.Helper()
	_, err := r.w.Set(r.ctx, path, []byte(data), client.AnyVersion)
	r.check(err)
}

func (r *rig) remove(path string) {
	r.Helper()
	r.check(r.w.Delete(r.ctx, path, client.AnyVersion))
}

// tree starts a cache of the tree at path.
func (r *rig) tree(path string, opts ...cache.Option) *cache.Tree[string] {
	r.Helper()
	t, err := cache.NewTree(r.c, path, cache.Text, opts...)
	r.check(err)
	r.Cleanup(t.Close)
	r.check(t.Start(r.within(time.Minute)))
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
	s, err := t.Wait(r.within(time.Minute), r.srv.Zxid())
	r.check(err)
	return text(s)
}

func (r *rig) want(t *cache.Tree[string], want string) {
	r.Helper()
	if got := r.now(t); got != want {
		r.Errorf("the cache has\n%s\nwant\n%s", got, want)
	}
}

var (
	bubbleNumber = regexp.MustCompile(`synctest bubble (\d+)`)
	ourFrames    = regexp.MustCompile(`docent/recipes/cache\.`)
)

// stackRoom is kept: new memory of this size costs more than the stacks.
var stackRoom struct {
	sync.Mutex
	buf [16 << 20]byte
}

func allStacks() string {
	stackRoom.Lock()
	defer stackRoom.Unlock()
	return string(stackRoom.buf[:runtime.Stack(stackRoom.buf[:], true)])
}

// busyGoroutines are the goroutines of this bubble in the package.
func busyGoroutines() (stacks []string) {
	synctest.Wait()
	all := strings.Split(allStacks(), "\n\n")
	own := bubbleNumber.FindString(all[0])
	for _, stack := range all[1:] {
		head, _, _ := strings.Cut(stack, "\n")
		if bubbleNumber.FindString(head) == own && ourFrames.MatchString(stack) {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

// wantNothingLeft checks that there is neither a goroutine of the package nor a watch.
func (r *rig) wantNothingLeft() {
	r.Helper()
	if left := busyGoroutines(); len(left) != 0 {
		r.Errorf("%d goroutines left, one of them:\n%s", len(left), left[0])
	}
	time.Sleep(10 * time.Second)
	if n := r.srv.WatchCount(); n != 0 {
		r.Errorf("%d watches left: %+v", n, r.srv.Watches())
	}
}
