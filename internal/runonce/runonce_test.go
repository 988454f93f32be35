package runonce_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/runonce"
)

// A later caller gets the result of the first, or the end of its own context,
// whichever comes first. Neither disturbs the first caller.
func TestDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, why := runonce.New(), errors.New("why")
		begun := time.Now()
		runs := 0
		go func() {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err, done := o.Do(ended, func() error { runs++; time.Sleep(time.Minute); return why }); !done || !errors.Is(err, why) {
				t.Errorf("first: %v, %v", err, done)
			}
		}()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err, done := o.Do(short, func() error { runs++; return nil }); done || err != nil || time.Since(begun) != time.Second {
			t.Errorf("short: %v, %v after %v", err, done, time.Since(begun))
		}
		if err, done := o.Do(t.Context(), func() error { runs++; return nil }); !done || !errors.Is(err, why) || time.Since(begun) != time.Minute {
			t.Errorf("patient: %v, %v after %v", err, done, time.Since(begun))
		}
		if err, done := o.Do(short, nil); !done || !errors.Is(err, why) {
			t.Errorf("late, with a context that has ended: %v, %v", err, done)
		}
		if runs != 1 {
			t.Errorf("%d runs", runs)
		}
	})
}

// A nil context is a mistake of the caller and panics. What has to be done once
// is then still to be done: a deferred Close of a lock does it.
func TestNilContextBeginsNothing(t *testing.T) {
	t.Parallel()
	o := runonce.New()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = o.Do(nil, func() error { t.Error("it ran"); return nil }) //nolint:staticcheck // the mistake in question
	}()
	ran := false
	if err, done := o.Do(t.Context(), func() error { ran = true; return nil }); err != nil || !done || !ran {
		t.Errorf("afterwards: %v, %v, ran %v", err, done, ran)
	}
}

// Begin is Do for a caller that does the work itself.
func TestBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, why := runonce.New(), errors.New("why")
		if !o.Begin() || o.Begin() || !o.Begun() {
			t.Error("the first call has not begun")
		}
		go func() { time.Sleep(time.Minute); o.End(why) }()
		begun := time.Now()
		if err, done := o.Do(t.Context(), func() error { t.Error("it ran"); return nil }); !done || !errors.Is(err, why) || time.Since(begun) != time.Minute {
			t.Errorf("later: %v, %v after %v", err, done, time.Since(begun))
		}
	})
}
