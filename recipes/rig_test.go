package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

const (
	sessionTimeout = 10 * time.Second
	dir            = "/locks/orders"
)

// rig is a server in a bubble of virtual time.
type rig struct {
	*testing.T
	srv *zktest.Server
	ctx context.Context
}

func bubble(t *testing.T, f func(*rig)) {
	t.Helper()
	bubbleWith(t, f)
}

func bubbleWith(t *testing.T, f func(*rig), opts ...zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		f(&rig{T: t, ctx: ctx, srv: zktest.NewServer(t, append([]zktest.Option{
			zktest.WithTick(time.Second), zktest.WithLatency(50*time.Microsecond, time.Millisecond),
		}, opts...)...)})
	})
}

// maxReply is as much as a test reads at a time. go-zookeeper makes a buffer of that size for each
// connection, and of 1.5 MiB by default, which is dear with the race detector.
const maxReply = 512 << 10

func (r *rig) connect(name string, opts ...client.Option) *client.Client {
	r.Helper()
	c, err := client.Connect(r.ctx, "zk", append([]client.Option{
		client.WithSessionTimeout(sessionTimeout),
		client.WithDialer(r.srv.Client(name).DialContext),
		client.WithMaxReply(maxReply),
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

func (r *rig) mutex(c *client.Client, opts ...recipes.LockOption) *recipes.InterProcessMutex {
	r.Helper()
	m, err := recipes.NewInterProcessMutex(c, dir, opts...)
	r.check(err)
	return m
}

func (r *rig) held(m *recipes.InterProcessMutex) *recipes.Hold {
	r.Helper()
	h, err := m.Acquire(r.ctx)
	r.check(err)
	return h
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

var contender = regexp.MustCompile(`^_c_[0-9a-f-]{36}-lock-\d{10}$`)

// line is the nodes of the contenders in the queue.
func (r *rig) line() (in []string) {
	for _, name := range r.srv.Children(dir) {
		if contender.MatchString(name) {
			in = append(in, name)
		}
	}
	return in
}

// empty checks that no contender is left once removals have had their time, and
// that the lock is free.
func (r *rig) empty() {
	r.Helper()
	time.Sleep(5 * time.Second)
	if left := r.line(); len(left) != 0 {
		r.Errorf("left behind: %v", left)
	}
}

type result struct {
	hold *recipes.Hold
	err  error
}

// acquire acquires by itself.
func acquire(ctx context.Context, m *recipes.InterProcessMutex) <-chan result {
	done := make(chan result, 1)
	go func() {
		h, err := m.Acquire(ctx)
		done <- result{h, err}
	}()
	return done
}

func wantErr(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error %v does not match %v", err, target)
		}
	}
}

func wantNoErr(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			t.Errorf("error %v matches %v", err, target)
		}
	}
}

var (
	bubbleNumber = regexp.MustCompile(`synctest bubble (\d+)`)
	ourFrames    = regexp.MustCompile(`docent/(recipes|recipes/internal/seqqueue)\.`)
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

// busyGoroutines counts the goroutines of this bubble in the recipes.
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

func name(i int) string { return fmt.Sprintf("c%d", i) }

// refused reports whether a server answered the operation that failed with err.
func refused(err error) bool {
	var op *client.OpError
	return errors.As(err, &op) && op.Outcome == client.OutcomeRefused
}
