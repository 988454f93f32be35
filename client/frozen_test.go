package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
)

const (
	abandonedCalls = 10_000
	abandonedAfter = 100 * time.Millisecond // what a caller waits
	abandonedEvery = 2 * time.Millisecond   // 500 calls in a second, fifty at a time

	// tolerated is how many goroutines may be left, whatever the number of calls.
	// They belong to a connection that is being made, and to former ones in the
	// strait. toleratedBytes is how much memory may be left of each call. The
	// client has to know which requests of the connection are not answered yet,
	// and when it sent them. It need not keep the request, the caller or a
	// goroutine.
	tolerated      = 20
	toleratedBytes = 100
)

// Callers that give up leave no goroutine behind, and next to no memory, however
// long the server is silent. So a program that gives its calls short contexts
// survives a server that hangs. Where the silence ends, the next call succeeds in
// the same session.
func TestAbandonedCallsLeaveNothing(t *testing.T) { //nolint:paralleltest // counts the goroutines and the memory of the process
	for _, tt := range []struct { //nolint:paralleltest // as above
		name         string
		silence, end func(*rig, *strait)
		bytes        bool // only the client keeps anything of a request
	}{
		{
			name:    "the server is frozen",
			silence: func(r *rig, _ *strait) { r.Srv.Freeze() },
			end:     func(r *rig, _ *strait) { r.Srv.Thaw() },
		},
		{
			name:    "the server reads and does not answer",
			silence: func(_ *rig, s *strait) { s.swallow.Store(true) },
			bytes:   true,
		},
		{
			name:    "the connection takes no bytes",
			silence: func(_ *rig, s *strait) { s.narrow() },
			end:     func(_ *rig, s *strait) { s.widen() },
			bytes:   true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				s := &strait{dial: r.Srv.Client("a").DialContext, done: r.Ctx.Done()}
				c := r.Connect("a", client.WithSessionTimeout(40*time.Second), client.WithDialer(s.DialContext))
				r.create("/dir", "data")
				id := r.Session(c).ID()
				r.crowd(c, abandonedCalls/100, time.Minute, nil)
				before := r.footprint()
				tt.silence(r, s)
				r.crowd(c, abandonedCalls, abandonedAfter, context.DeadlineExceeded)
				after := r.footprint()
				r.Logf("goroutines %d before, %d after; heap %d bytes before, %d after",
					before.goroutines, after.goroutines, before.heap, after.heap)
				if n := after.goroutines - before.goroutines; n > tolerated {
					r.Errorf("%d goroutines are left of %d calls, want %d at most", n, abandonedCalls, tolerated)
				}
				if n := after.heap - before.heap; tt.bytes && n > abandonedCalls*toleratedBytes {
					r.Errorf("%d bytes are left of each call, want %d at most", n/abandonedCalls, toleratedBytes)
				}
				if tt.end == nil {
					return
				}
				tt.end(r, s)
				r.crowd(c, 1, 10*time.Second, nil) // a connection may have to be made
				if now := r.Session(c).ID(); now != id {
					r.Errorf("session 0x%x after the silence, want 0x%x", now, id)
				}
			})
		})
	}
}

// crowd makes so many calls, one of each kind in turn. It checks that each
// returns within its context and with the wanted error.
func (r *rig) crowd(c *client.Client, calls int, patience time.Duration, want error) {
	r.Helper()
	kinds := []func(context.Context) error{
		func(ctx context.Context) error { _, _, err := c.Get(ctx, "/dir"); return err },
		func(ctx context.Context) error { _, _, err := c.Exists(ctx, "/dir"); return err },
		func(ctx context.Context) error { _, _, err := c.Children(ctx, "/"); return err },
		func(ctx context.Context) error { _, _, err := c.GetACL(ctx, "/dir"); return err },
		func(ctx context.Context) error { return c.Sync(ctx, "/dir") },
		func(ctx context.Context) error {
			_, err := c.Set(ctx, "/dir", []byte("other"), client.AnyVersion)
			return err
		},
		func(ctx context.Context) error {
			_, err := c.Multi(ctx, client.CheckOp("/dir", client.AnyVersion))
			return err
		},
		func(ctx context.Context) error {
			if _, err := c.Create(ctx, "/dir", nil); !errors.Is(err, zk.ErrNodeExists) {
				return err
			}
			return nil
		},
	}
	var (
		wg     sync.WaitGroup
		late   atomic.Int64 // calls that returned after their contexts had ended
		others atomic.Int64 // calls that returned something else
	)
	for n := range calls {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(r.Ctx, patience)
			defer cancel()
			begun := time.Now()
			err := kinds[n%len(kinds)](ctx)
			if time.Since(begun) > patience+time.Millisecond {
				late.Add(1)
			}
			if !errors.Is(err, want) && others.Add(1) == 1 {
				r.Errorf("call %d: %v, want %v", n, err, want)
			}
		})
		time.Sleep(abandonedEvery)
	}
	wg.Wait()
	if n := late.Load() + others.Load(); n > 0 {
		r.Errorf("of %d calls %d returned later than %v, %d with another error than %v", calls, late.Load(), patience, others.Load(), want)
	}
}

// footprint is what a process keeps when nothing moves.
type footprint struct {
	goroutines int
	heap       int64 // bytes that are live
}

func (r *rig) footprint() footprint {
	r.Helper()
	synctest.Wait()
	for range 3 { // what pools and finalizers hold is freed by the second collection
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return footprint{runtime.NumGoroutine(), int64(m.HeapAlloc)}
}

// strait is a way to the server on which a Write lasts until the other side
// has read it, as with buffers that are full.
type strait struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	done    <-chan struct{}
	swallow atomic.Bool // what is read goes nowhere

	mu   sync.Mutex    // guards wide
	wide chan struct{} // nil, or closed when the server's side reads again
}

// narrow ends the reading at the server's side: one more Write succeeds.
func (s *strait) narrow() {
	s.mu.Lock()
	s.wide = make(chan struct{})
	s.mu.Unlock()
}

// widen undoes narrow.
func (s *strait) widen() {
	s.mu.Lock()
	close(s.wide)
	s.wide = nil
	s.mu.Unlock()
}

func (s *strait) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	up, err := s.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	go s.carry(up, far) // both end with either connection
	go func() {
		_, _ = io.Copy(far, up)
		_ = far.Close()
	}()
	return near, nil
}

func (s *strait) carry(up, far net.Conn) {
	defer func() { _ = up.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := far.Read(buf)
		if err != nil {
			return
		}
		s.mu.Lock()
		wide := s.wide
		s.mu.Unlock()
		if wide != nil {
			select {
			case <-wide:
			case <-s.done:
				return
			}
		}
		if s.swallow.Load() {
			continue
		}
		if _, err := up.Write(buf[:n]); err != nil {
			return
		}
	}
}

// What callers of protected creates have left is removed by one goroutine, however
// many gave up.
func TestAbandonedCreatesShareAGoroutine(t *testing.T) { //nolint:paralleltest // counts the goroutines of the process
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithSessionTimeout(40*time.Second))
		s := r.Session(c)
		r.create("/q", "")
		before := r.footprint()
		r.Srv.Freeze()
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				_, err := inner.CreateAndList(r.Within(abandonedAfter), s, newNode{Dir: "/q", Prefix: "lock-", List: true})
				testrig.WantErr(t, err, context.DeadlineExceeded)
			})
			time.Sleep(abandonedEvery)
		}
		wg.Wait()
		if n := r.footprint().goroutines - before.goroutines; n > tolerated {
			r.Errorf("%d goroutines are left", n)
		}
		r.Srv.Thaw()
		time.Sleep(10 * time.Second)
		if left := r.named("/q"); len(left) != 0 || r.Session(c).ID() != s.ID() {
			r.Errorf("%d nodes are left", len(left))
		}
	})
}
