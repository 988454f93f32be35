package wire_test

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/wire"
)

func TestFailedAttempts(t *testing.T) {
	t.Parallel()
	errDial, errPace := errors.New("no route"), errors.New("no pace")
	var dialErr, paceErr error
	r := newRig(t, func(cfg *wire.Config) {
		dial := cfg.Dial
		cfg.Pace = func(context.Context, string) error { return paceErr }
		cfg.Dial = func(ctx context.Context, s string) (net.Conn, error) {
			if dialErr != nil {
				return nil, dialErr
			}
			return dial(ctx, s)
		}
	})
	dialErr = errDial
	if _, err := r.link.Dial("tcp", "s:1", 0); !errors.Is(err, errDial) {
		t.Errorf("Dial = %v", err)
	}
	dialErr, paceErr = nil, errPace
	if _, err := r.link.Dial("tcp", "s:1", 0); !errors.Is(err, errPace) {
		t.Errorf("Dial = %v", err)
	}
	paceErr = nil
	r.wantCalls("down", "down")
	old, _ := r.establish()
	r.establish() // a connection that is still open goes down first
	if _, err := old.Read(make([]byte, 1)); err == nil {
		t.Error("the old connection is still readable")
	}
	if _, err := old.Write(frame(1, 9, "/")); err == nil {
		t.Error("the old connection is still writable")
	}
	_ = old.Close()
	r.wantCalls("down", "down", "up", "down", "up")
	r.wantAlive()
}

// The pace is the client's own waiting; only what follows counts.
func TestPaceDoesNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(cfg *wire.Config) {
			cfg.Pace = func(context.Context, string) error {
				time.Sleep(time.Minute)
				return nil
			}
		})
		r.establish()
	})
}

func TestDialLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slowDial(1, time.Hour))
		start := time.Now()
		if _, err := r.link.Dial("tcp", "s:1", time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Dial = %v", err)
		}
		if got := time.Since(start); got != timeout/3 {
			t.Errorf("Dial took %v", got)
		}
		r.wantCalls("down")
		r.wantAlive()
	})
}

// A dial needs no goroutine besides its own. Its context ends with the Link by
// itself, and says why.
func TestDialStartsNoGoroutine(t *testing.T) { //nolint:paralleltest // counts the goroutines of the process
	gone := errors.New("gone")
	var during int
	var cause error
	var r *rig
	r = newRig(t, func(cfg *wire.Config) {
		cfg.Dial = func(ctx context.Context, _ string) (net.Conn, error) {
			during = runtime.NumGoroutine()
			r.link.End(gone)
			cause = context.Cause(ctx)
			return nil, gone
		}
	})
	before := runtime.NumGoroutine()
	if _, err := r.link.Dial("tcp", "s:1", 0); !errors.Is(err, wire.ErrOver) || !errors.Is(cause, gone) {
		t.Errorf("Dial = %v, its context ended for %v", err, cause)
	}
	if during != before {
		t.Errorf("%d goroutines before the dial, %d in it", before, during)
	}
}

// A request for a new session that no server answers is given more time with
// every round. So few are under way when the leader comes back. A session that
// exists cannot wait.
func TestUnansweredHandshakesGetRarer(t *testing.T) {
	t.Parallel()
	for servers, want := range map[int][]time.Duration{
		1: {timeout / 3, timeout * 2 / 3, timeout * 4 / 3, 2 * timeout, 2 * timeout},
		3: {timeout / 4, timeout / 4, timeout / 4, timeout / 2, timeout / 2, timeout / 2, timeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(cfg *wire.Config) { cfg.Servers = func() int { return servers } })
			silence := func(asks int64) time.Duration {
				c, p := r.dial()
				go p.swallowAll()
				begun := time.Now()
				_, _ = c.Write(connectRequest(asks))
				if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("Read = %v", err)
				}
				return time.Since(begun)
			}
			for i, limit := range want {
				if got := silence(0); got != limit {
					t.Errorf("%d servers, try %d: %v, want %v", servers, i+1, got, limit)
				}
			}
			r.establish()
			for range 2 * servers {
				if got := silence(sessionID); got != want[0] {
					t.Errorf("%d servers, with a session: %v, want %v", servers, got, want[0])
				}
			}
		})
	}
}
