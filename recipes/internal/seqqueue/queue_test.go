package seqqueue_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes/internal/seqqueue"
	"github.com/docent-go/docent/zktest"
)

// world is a server in a bubble, a client and a queue in /q.
type world struct {
	*testing.T
	ctx context.Context
	srv *zktest.Server
	c   *client.Client
	q   *seqqueue.Queue
	log *bytes.Buffer
}

func bubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithTick(time.Second), zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var log bytes.Buffer
		c, err := client.Connect(ctx, "zk", client.WithDialer(srv.DialContext), client.WithSessionTimeout(10*time.Second),
			client.WithDefaultData(nil), client.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if err != nil {
			t.Fatal(err)
		}
		if err := srv.Create("/q", nil); err != nil {
			t.Fatal(err)
		}
		f(&world{T: t, ctx: ctx, srv: srv, c: c, q: seqqueue.New(c, "/q", tags), log: &log})
		if err := c.CloseContext(ctx); err != nil {
			t.Error(err)
		}
	})
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) join() *seqqueue.Member {
	w.Helper()
	m, err := w.q.Join(w.ctx, w.q.Node(prefix, nil, nil))
	w.check(err)
	return m
}

// empty checks that no member stands in line once removals have had their time.
func (w *world) empty() {
	w.Helper()
	time.Sleep(5 * time.Second)
	if left := w.srv.Children("/q"); len(left) != 0 {
		w.Errorf("left: %v", left)
	}
}

func TestQueueIsFIFO(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		const n = 20
		var order []int
		var done sync.WaitGroup
		for i := range n {
			m := w.join()
			if m.Node.Sequence() != int64(i) || m.Czxid == 0 || w.q.Path(m.Node) != m.Path {
				w.Errorf("member %d: %+v", i, m)
			}
			done.Go(func() {
				w.check(m.Await(w.ctx, seqqueue.AllBlock))
				order = append(order, i) // one at a time, or -race tells
				time.Sleep(time.Millisecond)
				w.check(m.Vacate(w.ctx))
			})
		}
		line, err := w.q.Line(w.ctx)
		w.check(err)
		if len(line) == 0 || len(line) > n {
			w.Errorf("line: %v", line)
		}
		done.Wait()
		for i, who := range order {
			if who != i {
				w.Fatalf("order %v", order)
			}
		}
		w.empty()
	})
}

// Near the end of the counter no member is granted a turn, and half way there
// every member is warned.
func TestSequenceEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		counter    int32
		warns, end bool
	}{
		{"young", 7, false, false},
		{"just before half", seqqueue.WarnSequence - 1, false, false},
		{"half", seqqueue.WarnSequence, true, false},
		{"last", seqqueue.LastSequence - 1, true, false},
		{"near the end", seqqueue.LastSequence, false, true},
		{"at the end", 2147483647, false, true},
		{"wrapped", -2147483648, false, true},
		{"wrapped and on", -7, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				w.check(w.srv.SetCounter("/q", tt.counter))
				m, err := w.q.Join(w.ctx, w.q.Node(prefix, nil, nil))
				if tt.end {
					if !errors.Is(err, seqqueue.ErrExhausted) || m != nil {
						w.Errorf("Join = %v, %v", m, err)
					}
					w.empty()
				} else {
					w.check(err)
					w.check(m.Await(w.ctx, seqqueue.AllBlock))
					w.check(m.Vacate(w.ctx))
				}
				w.check(w.c.CloseContext(w.ctx)) // and everything is written
				if got := strings.Contains(w.log.String(), "half of its sequence numbers"); got != tt.warns {
					w.Errorf("warned: %v\n%s", got, w.log)
				}
			})
		})
	}
}

// A negative number in the line means that the order is not safe for any member,
// also for members that came before.
func TestWrappedNeighbour(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		m := w.join()
		w.check(w.srv.Create("/q/x-lock--2147483648", nil))
		ahead, err := m.Ahead(w.ctx, seqqueue.AllBlock) // its first list is older
		if err == nil && ahead == nil {
			ahead, err = m.Ahead(w.ctx, seqqueue.AllBlock)
		}
		if ahead != nil || !errors.Is(err, seqqueue.ErrExhausted) {
			w.Errorf("Ahead = %v, %v", ahead, err)
		}
		w.check(m.Vacate(w.ctx))
	})
}

func TestMemberGone(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		first, m := w.join(), w.join()
		waiting := make(chan error, 1)
		go func() { waiting <- m.Await(w.ctx, seqqueue.AllBlock) }()
		time.Sleep(time.Second)
		w.check(w.srv.Delete(m.Path))
		w.check(first.Vacate(w.ctx))
		if err := <-waiting; !errors.Is(err, seqqueue.ErrGone) {
			w.Errorf("Await = %v", err)
		}
		if err := m.Vacate(w.ctx); !errors.Is(err, seqqueue.ErrGone) {
			w.Errorf("Delete = %v", err)
		}
		m = w.join()
		_, err := m.Ahead(w.ctx, seqqueue.AllBlock)
		w.check(err)
		w.check(w.srv.Delete("/q"))
		if _, err := m.Ahead(w.ctx, seqqueue.AllBlock); !errors.Is(err, seqqueue.ErrGone) {
			w.Errorf("Ahead without a directory = %v", err)
		}
		if line, err := w.q.Line(w.ctx); err != nil || len(line) != 0 {
			w.Errorf("Line = %v, %v", line, err)
		}
	})
}

// A member is of one session: when that is over it is told so, and never acts
// in the next.
func TestMemberOfALostSession(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		m := w.join()
		w.srv.ExpireSession(m.Session.ID())
		<-m.Session.Context().Done()
		_, err := w.c.Session(w.ctx)
		w.check(err)
		for name, err := range map[string]error{
			"Await":  m.Await(w.ctx, seqqueue.AllBlock),
			"Vacate": m.Vacate(w.ctx),
		} {
			if !errors.Is(err, client.ErrSessionLost) {
				w.Errorf("%s = %v", name, err)
			}
		}
		m.VacateInBackground()
		w.empty()
	})
}

// A Delete that fails is made good in the background.
func TestDeleteFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		m := w.join()
		w.srv.Freeze()
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		if err := m.Vacate(ctx); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("Delete = %v", err)
		}
		w.srv.Thaw()
		w.empty()
	})
}
