package nodes_test

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

const sessionTimeout = 10 * time.Second

// rig is a server in a bubble of virtual time.
type rig struct {
	*testing.T
	srv *zktest.Server
	ctx context.Context
}

func bubble(t *testing.T, f func(*rig), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		f(&rig{T: t, ctx: ctx, srv: zktest.NewServer(t, append([]zktest.Option{
			zktest.WithTick(time.Second), zktest.WithLatency(50*time.Microsecond, time.Millisecond),
		}, opts...)...)})
	})
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

// session is the id of c's session.
func (r *rig) session(c *client.Client) int64 {
	r.Helper()
	s, err := c.Session(r.ctx)
	r.check(err)
	return s.ID()
}

func wantErr(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error %v does not match %v", err, target)
		}
	}
}

var (
	bubbleNumber = regexp.MustCompile(`synctest bubble (\d+)`)
	ourFrames    = regexp.MustCompile(`docent/recipes/nodes\.`)
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

// busyGoroutines counts the goroutines of this bubble in the package.
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

func wantNoGoroutine(t *testing.T) {
	t.Helper()
	if left := busyGoroutines(); len(left) != 0 {
		t.Errorf("%d goroutines left, one of them:\n%s", len(left), left[0])
	}
}

const nodePath = "/workers/w1"

// node starts a node with the data "one" and waits until it stands.
func (r *rig) node(c *client.Client, mode nodes.Mode, opts ...nodes.Option) *nodes.PersistentNode {
	r.Helper()
	n := r.started(c, mode, opts...)
	r.check(n.Wait(r.within(time.Minute)))
	return n
}

// lazily adds WithLazyStart.
func lazily(opts ...nodes.Option) []nodes.Option {
	return append(slices.Clip(opts), nodes.WithLazyStart())
}

// started starts a node with the data "one", and does not wait.
func (r *rig) started(c *client.Client, mode nodes.Mode, opts ...nodes.Option) *nodes.PersistentNode {
	r.Helper()
	n, err := nodes.NewPersistentNode(c, mode, nodePath, []byte("one"), lazily(opts...)...)
	r.check(err)
	r.check(n.Start(r.ctx))
	return n
}

// data is that of the node at path, and its stat.
func (r *rig) data(path string) (string, zktest.Stat) {
	r.Helper()
	n, there := r.srv.Node(path)
	if !there {
		r.Fatalf("no node %s among %v", path, r.srv.Children("/workers"))
	}
	return string(n.Data), n.Stat
}

// wantOurs checks that n stands, once, in the session of c, with that data.
func (r *rig) wantOurs(c *client.Client, n *nodes.PersistentNode, data string) zktest.Stat {
	r.Helper()
	status := n.Status()
	if status.State != nodes.Ours {
		r.Fatalf("status %+v", status)
	}
	got, stat := r.data(status.Path)
	if got != data || stat.Czxid != status.Czxid {
		r.Errorf("the node has %q and czxid %d, want %q and %d", got, stat.Czxid, data, status.Czxid)
	}
	if stat.EphemeralOwner > 0 && stat.EphemeralOwner != r.session(c) {
		r.Errorf("the node is of session %x, want %x", stat.EphemeralOwner, r.session(c))
	}
	if all := r.srv.Children("/workers"); len(all) != 1 {
		r.Errorf("more than one node: %v", all)
	}
	return stat
}

// closed closes n and checks that nothing is left: no node, watch or goroutine.
func (r *rig) closed(n *nodes.PersistentNode) {
	r.Helper()
	r.check(n.CloseContext(r.within(time.Minute)))
	wantNoGoroutine(r.T)
	time.Sleep(5 * time.Second)
	if left := r.srv.Children("/workers"); len(left) != 0 {
		r.Errorf("left behind: %v", left)
	}
	if n := r.srv.WatchCount(); n != 0 {
		r.Errorf("%d watches left", n)
	}
	if status := n.Status(); status.State != nodes.Absent && status.State != nodes.Removed {
		r.Errorf("status %+v after Close", status)
	}
}

// vacancy watches the commits until the end of the test. It returns a function that
// reports for how long no node has stood below /workers since.
func (r *rig) vacancy() func() time.Duration {
	var mu sync.Mutex
	standing, since, sum := len(r.srv.Children("/workers")), time.Now(), time.Duration(0)
	r.srv.OnCommit(func(c zktest.Commit) {
		mu.Lock()
		defer mu.Unlock()
		was := standing
		for _, p := range c.Created {
			if strings.HasPrefix(p, "/workers/") {
				standing++
			}
		}
		for _, p := range c.Deleted {
			if strings.HasPrefix(p, "/workers/") {
				standing--
			}
		}
		switch {
		case was > 0 && standing == 0:
			since = c.Time
		case was == 0 && standing > 0:
			sum += c.Time.Sub(since)
		}
	})
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return sum
	}
}

// most watches the commits until the end of the test. It returns a function that
// reports how many nodes have stood below /workers at most.
func (r *rig) most() func() int {
	var mu sync.Mutex
	standing := map[string]bool{}
	most := 0
	r.srv.OnCommit(func(c zktest.Commit) {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range c.Deleted {
			delete(standing, p)
		}
		for _, p := range c.Created {
			if strings.HasPrefix(p, "/workers/") {
				standing[p] = true
			}
		}
		most = max(most, len(standing))
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return most
	}
}
