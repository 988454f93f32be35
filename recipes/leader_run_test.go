package recipes_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/retry"
)

// If fn fails with the loss of another lock, the term is not lost, and Run ends with that
// error.
func TestRunEndsWithTheLossOfAnotherLock(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		ran := 0
		err := r.latch(c, "a").Run(r.Ctx, func(context.Context, *recipes.Term) error {
			ran++
			h := r.held(r.mutex(c))
			r.Check(r.Srv.Delete(h.Path()))
			<-h.Context().Done()
			return h.Close()
		})
		testrig.WantErr(t, err, recipes.ErrLost, recipes.ErrNodeDeleted)
		testrig.WantNoErr(t, err, context.DeadlineExceeded)
		if ran != 1 {
			r.Errorf("fn ran %d times", ran)
		}
		r.inElection(0)
	})
}

// Run goes on after a lost term, also if fn returns an error that is marked as permanent.
func TestRunGoesOnAfterAPermanentError(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		enough := errors.New("enough")
		ran := 0
		err := r.latch(r.Connect("a"), "a").Run(r.Ctx, func(ctx context.Context, term *recipes.Term) error {
			if ran++; ran > 1 {
				return enough
			}
			r.Check(r.Srv.Delete(term.Path()))
			<-ctx.Done()
			return retry.Permanent(ctx.Err())
		})
		testrig.WantErr(t, err, enough)
	})
}

// Run ends with the loss of an outer hold, also if that came during a term and the
// program has kept ctx alive.
func TestRunEndsWithTheOuterHold(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		h := r.held(r.mutex(c))
		ran := 0
		err := r.latch(c, "a").Run(context.WithoutCancel(h.Context()), func(ctx context.Context, _ *recipes.Term) error {
			if ran++; ran == 1 {
				r.Check(r.Srv.Delete(h.Path()))
			}
			<-ctx.Done()
			return ctx.Err()
		})
		testrig.WantErr(t, err, recipes.ErrLost, recipes.ErrNodeDeleted)
		if ran != 1 {
			r.Errorf("led %d times", ran)
		}
	})
}

// A participant that stands in line for long and then loses its session has not
// failed in a row. No policy gives up because of that.
func TestRunForgetsOldFailures(t *testing.T) {
	t.Parallel()
	for _, p := range []retry.Policy{retry.NTimes(2, time.Second), retry.UntilElapsed(time.Minute, time.Second)} {
		bubble(t, func(r *rig) {
			first := r.leads(r.latch(r.Connect("b"), "b"))
			c := r.Connect("a")
			ctx, cancel := context.WithCancel(r.Ctx)
			done := make(chan error, 1)
			go func() {
				done <- r.latch(c, "a", recipes.WithCampaignRetry(p)).Run(ctx, func(context.Context, *recipes.Term) error { return nil })
			}()
			for range 4 {
				r.inElection(2)
				time.Sleep(5 * time.Minute)
				r.Srv.ExpireSession(r.SessionID(c))
				time.Sleep(5 * time.Second)
			}
			r.inElection(2)
			cancel()
			testrig.WantErr(t, <-done, context.Canceled)
			r.Check(first.Close())
		})
	}
}

// The program releases a term while fn runs, and fn returns the end of its
// context. The participant stands in line again, as after any term that it gave
// up.
func TestRunGoesOnAfterARelease(t *testing.T) {
	t.Parallel()
	for _, end := range []func(context.Context) error{context.Context.Err, context.Cause} {
		bubble(t, func(r *rig) {
			enough := errors.New("enough")
			ran := 0
			err := r.latch(r.Connect("a"), "a").Run(r.Ctx, func(ctx context.Context, term *recipes.Term) error {
				if ran++; ran > 1 {
					return enough
				}
				go func() { _ = term.Close() }()
				<-ctx.Done()
				return end(ctx)
			})
			testrig.WantErr(t, err, enough)
			r.inElection(0)
		})
	}
}

// The process is told to stop, by the context of Run. The function hands the term over with
// the context of the term, and Run ends.
func TestRunHandsOverWhenToldToStop(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		e := r.latch(r.Connect("a"), "a")
		told, stop := context.WithCancel(r.Ctx)
		var waits [2]<-chan campaigned
		err := e.Run(told, func(ctx context.Context, term *recipes.Term) error {
			for i := range waits {
				waits[i] = r.campaign(r.Ctx, r.latch(r.Connect(name(i)), name(i)), i+2)
			}
			stop()
			<-ctx.Done()
			testrig.WantErr(t, term.AwaitSuccessor(ctx), context.Canceled)
			r.Check(term.AwaitSuccessor(term.Context()))
			r.Check(term.Err())
			return term.HandOver(term.Context(), name(1))
		})
		testrig.WantErr(t, err, context.Canceled)
		for _, i := range []int{1, 0} {
			next := <-waits[i]
			r.Check(next.err)
			r.Check(next.term.Close())
		}
		r.inElection(0)
	})
}

// Leading says what the newest term of the value says, on any goroutine.
func TestLeading(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		one, other := r.latch(c, "a"), r.latch(c, "b")
		want := func(leads bool) {
			r.Helper()
			if one.Leading() != leads || other.Leading() {
				r.Fatalf("leading: %v, %v, want %v", one.Leading(), other.Leading(), leads)
			}
		}
		want(false)
		first := r.leads(one)
		want(true)
		waits := r.campaign(r.Ctx, one, 2)
		_, err := one.TryCampaign(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrBusy)
		want(true)
		r.Check(first.Close())
		next := <-waits
		r.Check(next.err)
		want(true)
		testrig.WantErr(t, first.Err(), recipes.ErrReleased)
		r.Srv.Partition()
		<-next.term.Context().Done()
		want(false)
		r.Srv.Heal()
		testrig.WantErr(t, next.term.Close(), recipes.ErrLost)
		last, err := one.TryCampaign(r.Within(time.Minute))
		r.Check(err)
		want(true)
		r.Check(r.Srv.Delete(last.Path()))
		<-last.Context().Done()
		want(false)
		testrig.WantErr(t, last.Close(), recipes.ErrLost)
		r.inElection(0)
	})
}

// If ctx ends between two terms, the error of Run says which election it was.
func TestRunThatEndsBetweenTermsNamesTheElection(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		ctx, cancel := context.WithCancel(r.Ctx)
		latch := r.latch(r.Connect("a"), "a")
		end := func(context.Context, *recipes.Term) error { cancel(); return nil }
		for _, err := range []error{latch.Run(ctx, end), latch.Run(ctx, end)} {
			var of *recipes.LockError
			if testrig.WantErr(t, err, context.Canceled); !errors.As(err, &of) || of.Path != latch.Path() {
				r.Errorf("the error does not name the election: %v", err)
			}
		}
	})
}

// messages passes on what is logged, from warnings on.
type messages struct {
	slog.Handler

	said chan string
}

func (m messages) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (m messages) Handle(_ context.Context, r slog.Record) error {
	m.said <- r.Message
	return nil
}

// A program that closes its client under Run is told by Run alone: no log says that the
// participant tries again.
func TestRunUnderAClientThatCloses(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		said := make(chan string, 16)
		c := r.Connect("a", client.WithLogger(slog.New(messages{slog.DiscardHandler, said})))
		err := r.latch(c, "a").Run(r.Ctx, func(ctx context.Context, _ *recipes.Term) error {
			go func() { _ = c.Close() }()
			<-ctx.Done()
			return ctx.Err()
		})
		testrig.WantErr(t, err, client.ErrClosed)
		close(said)
		for text := range said {
			r.Errorf("logged %q", text)
		}
	})
}
