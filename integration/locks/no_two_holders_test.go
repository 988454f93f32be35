package locks_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/proxy"
	"github.com/docent-go/docent/recipes"
)

// rounds is how often each schedule of TestNoTwoHolders is played. DOCENT_ROUNDS sets it.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("DOCENT_ROUNDS")
	if text == "" {
		return 50
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("DOCENT_ROUNDS=%q, want a number of rounds", text)
	}
	return n
}

// quiet is how long a contender that must wait is watched. A grant in the process takes
// microseconds.
const quiet = 20 * time.Millisecond

// schedule plays the contenders of one client on one path.
type schedule struct {
	*testing.T
	ctx  context.Context
	c    *client.Client
	lock *recipes.InterProcessReadWriteLock
}

// granted is what an acquire has returned.
type granted struct {
	*recipes.Hold
	err error
}

func (s *schedule) read(ctx context.Context) <-chan granted {
	return start(func() (*recipes.Hold, error) { return s.lock.ReadLock().Acquire(ctx) })
}

func (s *schedule) write(ctx context.Context) <-chan granted {
	return start(func() (*recipes.Hold, error) {
		w, err := s.lock.WriteLock().Acquire(ctx)
		if err != nil {
			return nil, err
		}
		return w.Hold, nil
	})
}

func start(acquire func() (*recipes.Hold, error)) <-chan granted {
	done := make(chan granted, 1)
	go func() {
		h, err := acquire()
		done <- granted{h, err}
	}()
	return done
}

// line waits until n contenders stand in the queue.
func (s *schedule) line(n int) {
	s.Helper()
	for {
		q, err := s.lock.Queue(s.ctx)
		s.check(err)
		if len(q) == n {
			return
		}
	}
}

func (s *schedule) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// take returns the hold that an acquire gives.
func (s *schedule) take(acquire <-chan granted) *recipes.Hold {
	s.Helper()
	select {
	case got := <-acquire:
		s.check(got.err)
		return got.Hold
	case <-s.ctx.Done():
		q, err := s.lock.Queue(context.WithoutCancel(s.ctx))
		s.Fatalf("not granted; the queue is %v, %v", q, err)
		return nil
	}
}

// waits checks that an acquire waits while held is held.
func (s *schedule) waits(writer <-chan granted, held *recipes.Hold) {
	s.Helper()
	select {
	case got := <-writer:
		s.check(got.err)
		if err := held.Err(); err == nil {
			s.Errorf("%s and %s are held together", got.Path(), held.Path())
		}
		s.check(got.Release(s.ctx))
		s.check(held.Release(s.ctx))
	case <-time.After(quiet):
		s.check(held.Release(s.ctx))
		s.check(s.take(writer).Release(s.ctx))
	}
}

// givesUp: a reader holds; a writer, a reader and a writer wait. The first writer gives up,
// and the second reader, which is let in, releases.
func (s *schedule) givesUp() {
	held := s.take(s.read(s.ctx))
	ctx, giveUp := context.WithCancel(s.ctx)
	first := s.write(ctx)
	s.line(2)
	second := s.read(s.ctx)
	s.line(3)
	last := s.write(s.ctx)
	s.line(4)
	giveUp()
	if got := <-first; !errors.Is(got.err, context.Canceled) {
		s.Fatal(got.err)
	}
	s.check(s.take(second).Release(s.ctx))
	s.waits(last, held)
}

// downgrades: a writer holds; a reader and a writer wait. The writer takes a read hold in
// its place, and the reader, which is let in, releases.
func (s *schedule) downgrades(downgrade func(w *recipes.WriteHold) (*recipes.Hold, error)) {
	w, err := s.lock.WriteLock().Acquire(s.ctx)
	s.check(err)
	reader := s.read(s.ctx)
	s.line(2)
	last := s.write(s.ctx)
	s.line(3)
	held, err := downgrade(w)
	s.check(err)
	s.check(s.take(reader).Release(s.ctx))
	s.waits(last, held)
}

// TestNoTwoHolders plays schedules by which contenders of one client once held one
// read/write lock together.
func TestNoTwoHolders(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t)
	c, err := client.Connect(ctx, node.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for name, play := range map[string]func(s *schedule){
		"a writer gives up": (*schedule).givesUp,
		"a writer downgrades": func(s *schedule) {
			s.downgrades(func(w *recipes.WriteHold) (*recipes.Hold, error) { return w.Downgrade(s.ctx) })
		},
		"a writer reads and releases": func(s *schedule) {
			s.downgrades(func(w *recipes.WriteHold) (*recipes.Hold, error) {
				h, err := s.lock.ReadLock().Acquire(w.Context())
				if err != nil {
					return nil, err
				}
				return h, w.Release(s.ctx)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range rounds(t) {
				lock, err := recipes.NewInterProcessReadWriteLock(c, fmt.Sprintf("/two/%s/%d", name, i))
				if err != nil {
					t.Fatal(err)
				}
				play(&schedule{t, ctx, c, lock})
			}
		})
	}
}

// TestNoGuardedWriteUnderTheNextHold: the answer to a Guard is lost, or late, and the holder
// releases. Once the next contender of the same client holds, the write is applied or never.
func TestNoGuardedWriteUnderTheNextHold(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t)
	px := proxy.Start(t, node.Addr())
	behind, err := client.Connect(ctx, px.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = behind.Close() })
	direct, err := client.Connect(ctx, node.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = direct.Close() })
	for i := range rounds(t) {
		guardLate(ctx, t, px, behind, direct, fmt.Sprintf("/guard/%d", i))
	}
}

func guardLate(ctx context.Context, t *testing.T, px *proxy.Proxy, c, direct *client.Client, dir string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	node := dir + "/x"
	_, err := direct.Create(ctx, node, []byte("old"), client.WithParents())
	must(err)
	m, err := recipes.NewInterProcessMutex(c, dir+"/lock")
	must(err)
	h, err := m.Acquire(ctx)
	must(err)
	next := start(func() (*recipes.Hold, error) { return m.Acquire(ctx) })
	for {
		q, err := m.Queue(ctx)
		must(err)
		if len(q) == 2 {
			break
		}
	}
	px.StallRequests()
	brief, stop := context.WithTimeout(ctx, 20*time.Millisecond)
	defer stop()
	_, err = h.Guard(brief, client.SetOp(node, []byte("late"), client.AnyVersion))
	if !client.UnknownOutcome(err) {
		t.Fatalf("Guard: %v", err)
	}
	_ = h.Release(brief) // goes on in the background
	released := time.AfterFunc(50*time.Millisecond, px.Resume)
	defer released.Stop()
	got := <-next
	must(got.err)
	before, _, err := direct.Get(ctx, node)
	must(err)
	must(c.Sync(ctx, node)) // behind all that the client has sent
	after, _, err := direct.Get(ctx, node)
	must(err)
	must(got.Err())
	if string(before) != string(after) {
		t.Errorf("%s was %q when the next contender held, and became %q", node, before, after)
	}
	must(got.Release(ctx))
}
