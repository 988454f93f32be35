package wire_test

import (
	"context"
	"errors"
	"net"
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
	r.establish() // a connection that nobody closed goes down first
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
