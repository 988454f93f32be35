package shared_test

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
	"github.com/docent-go/docent/zktest"
)

const sessionTimeout = 10 * time.Second

// rig is a server in a bubble of virtual time.
type rig struct {
	*testing.T
	srv *zktest.Server
	ctx context.Context
}

func bubble(t *testing.T, f func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		f(&rig{T: t, ctx: ctx, srv: zktest.NewServer(t,
			zktest.WithTick(time.Second), zktest.WithLatency(50*time.Microsecond, time.Millisecond))})
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
	ourFrames    = regexp.MustCompile(`docent/recipes/shared\.`)
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

func name(i int) string { return fmt.Sprintf("c%d", i) }
