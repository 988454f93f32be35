package recipes_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
)

// logged is a log that several goroutines write and the test reads.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) option() client.Option {
	return client.WithLogger(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn})))
}

// suspicions are the warnings of an acquire that may wait for itself.
func (l *logged) suspicions() (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if strings.Contains(line, "waits for itself") {
			all = append(all, line)
		}
	}
	return all
}

// nested are the ways to wait for a hold of one's own, with a context that is not the hold's.
var nested = map[string]func(r *rig, c *client.Client) (outer, inner acquirer){
	"mutex": func(r *rig, c *client.Client) (_, _ acquirer) {
		m := r.mutex(c)
		return as(m.Acquire), as(m.Acquire)
	},
	"another value": func(r *rig, c *client.Client) (_, _ acquirer) {
		return as(r.mutex(c).Acquire), as(r.mutex(c).Acquire)
	},
	"write in write": func(r *rig, c *client.Client) (_, _ acquirer) {
		l := r.rw(c)
		return as(l.WriteLock().Acquire), as(l.WriteLock().Acquire)
	},
	"read in write": func(r *rig, c *client.Client) (_, _ acquirer) {
		l := r.rw(c)
		return as(l.WriteLock().Acquire), as(l.ReadLock().Acquire)
	},
	"write in read": func(r *rig, c *client.Client) (_, _ acquirer) {
		l := r.rw(c)
		return as(l.ReadLock().Acquire), as(l.WriteLock().Acquire)
	},
}

// An acquire within a hold, with a context that is not the hold's, waits for itself for ever.
// One warning says so when it has waited a session timeout, also if others stand in between.
func TestWaitsForItself(t *testing.T) {
	t.Parallel()
	for name, pair := range nested {
		for _, between := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) {
					var log logged
					outer, inner := pair(r, r.Connect("a", log.option()))
					hold, err := outer(r.Ctx)
					r.Check(err)
					ctx, cancel := context.WithCancel(context.WithoutCancel(r.Ctx)) // without a deadline
					defer cancel()
					if between {
						other, _ := pair(r, r.Connect("b"))
						go func() {
							if h, err := other(ctx); err == nil {
								_ = h.Close()
							}
						}()
						time.Sleep(time.Second)
					}
					done := make(chan error, 1)
					go func() {
						_, err := inner(ctx)
						done <- err
					}()
					time.Sleep(testrig.SessionTimeout - time.Second)
					if early := log.suspicions(); len(early) != 0 {
						r.Errorf("early: %v", early)
					}
					time.Sleep(10 * time.Minute)
					at, ok := hold.(interface{ Path() string })
					if !ok {
						r.Fatalf("%T has no path", hold)
					}
					node := at.Path()
					all := log.suspicions()
					if len(all) != 1 || !strings.Contains(all[0], node) || !strings.Contains(all[0], "pass the context of the hold") {
						r.Errorf("want one warning that names %s and the remedy: %q", node, all)
					}
					cancel()
					testrig.WantErr(t, <-done, context.Canceled)
					r.Check(hold.Close())
				})
			})
		}
	}
}

// crowd holds for d, as one of n goroutines that each do so a number of times.
func (r *rig) crowd(n, times int, d time.Duration, acquire func(context.Context) (io.Closer, error)) {
	ctx := context.WithoutCancel(r.Ctx)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for range times {
				h, err := acquire(ctx)
				if err != nil {
					r.Error(err)
					return
				}
				time.Sleep(d)
				r.Check(h.Close())
			}
		})
	}
	wg.Wait()
}

// Goroutines that contend for a lock do not wait for themselves, however long they wait. A
// wait for a hold that is longer than a session timeout may be taken for such a wait. That
// happens a few times, as the wait must be twice as long each time.
func TestWaitsForOthers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		goroutines, times int
		hold              time.Duration
		most              int
	}{
		{40, 5, testrig.SessionTimeout / 3, 0},
		{3, 30, 4 * testrig.SessionTimeout, 4},
	} {
		bubble(t, func(r *rig) {
			var log logged
			m := r.mutex(r.Connect("a", log.option()))
			r.crowd(tt.goroutines, tt.times, tt.hold, as(m.Acquire))
			if all := log.suspicions(); len(all) > tt.most {
				r.Errorf("%d goroutines, holds of %v: %d warnings, want %d at most: %v", tt.goroutines, tt.hold, len(all), tt.most, all)
			}
		})
	}
}

// Many acquires wait for one hold: one warning. An acquire whose context has a deadline says
// in its error what it waited for.
func TestWaitsForItselfOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var log logged
		m := r.mutex(r.Connect("a", log.option()))
		h := r.held(m)
		_, err := m.Acquire(r.Within(time.Minute))
		testrig.WantErr(t, err, context.DeadlineExceeded)
		if all := log.suspicions(); len(all) != 0 || !strings.Contains(err.Error(), "pass its context to the acquire") {
			r.Errorf("with a deadline: %v, %v", all, err)
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Ctx))
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if h, err := m.Acquire(ctx); err == nil {
					_ = h.Close()
				}
			})
		}
		time.Sleep(5 * time.Minute)
		if all := log.suspicions(); len(all) != 1 {
			r.Errorf("100 waiters: %v", all)
		}
		cancel()
		wg.Wait()
		r.Check(h.Release(r.Ctx))
	})
}
