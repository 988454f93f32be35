package fence_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/fence"
)

// The token is raised before the work begins, and not at all if the work may
// not begin.
func TestDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		newest int64 // that the database has seen; the hold's token is 7
		set    func(*lock, *store)
		want   string // what happens, in order
		errs   []error
	}{
		{name: "free", want: "acquire raise work begin check write commit release"},
		{name: "equal token", newest: 7, want: "acquire raise work begin check write commit release"},
		{name: "newer token seen", newest: 8, want: "acquire raise release", errs: []error{fence.ErrStale}},
		{name: "not obtained", set: func(l *lock, _ *store) { l.refuse = errBusy }, errs: []error{errBusy}},
		{
			name: "lost before the raise",
			set:  func(l *lock, _ *store) { l.hold.end(errLost); l.release = errLost },
			want: "acquire release", errs: []error{errLost},
		},
		{
			name: "lost before the work, and no timer has told",
			set:  func(l *lock, _ *store) { l.hold.expired = errLost },
			want: "acquire raise release", errs: []error{errLost},
		},
		{
			name: "the raise fails",
			set:  func(_ *lock, s *store) { s.raiseErr = errBody },
			want: "acquire raise release", errs: []error{errBody},
		},
		{
			name: "token that no lock gives",
			set:  func(l *lock, _ *store) { l.hold.token = 0 },
			want: "acquire release", errs: []error{fence.ErrNoToken},
		},
		{
			name: "shared hold",
			set:  func(l *lock, _ *store) { l.hold.exclusive = false },
			want: "acquire release", errs: []error{fence.ErrShared},
		},
		{
			name: "lost after the commit",
			set:  func(l *lock, _ *store) { l.release = errLost },
			want: "acquire raise work begin check write commit release", errs: []error{errLost},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLock(t.Context())
			s, db := openStore(t, l.trace, c.newest)
			if c.set != nil {
				c.set(l, s)
			}
			err := fence.Do(t.Context(), l, db, "stock", func(ctx context.Context) error {
				l.add("work")
				return db.Tx(ctx, "stock", write(nil))
			})
			if (err == nil) != (c.errs == nil) {
				t.Errorf("Do = %v", err)
			}
			wantErr(t, err, c.errs...)
			if errors.Is(err, fence.ErrCommit) {
				t.Errorf("error %v matches ErrCommit, and nothing of the work was committed", err)
			}
			l.want(t, strings.Fields(c.want)...)
		})
	}
}

// The late write of an old holder lands between the next holder's read and its
// write. The update of the next holder must not be lost.
func TestDoLateWriteAfterRead(t *testing.T) {
	t.Parallel()
	tr := &trace{}
	_, db := openStore(t, tr, 0)
	first := newLock(t.Context())
	err := fence.Do(t.Context(), first, db, "stock", func(ctx context.Context) error {
		// The old holder has read and is paused. The lock is lost.
		second := first.again(t.Context(), 9)
		return fence.Do(t.Context(), second, db, "stock", func(later context.Context) error {
			tr.add("read")
			late := db.Tx(ctx, "stock", write(nil))
			wantStale(t, late, fence.StaleError{Resource: "stock", Token: 7, Newest: 9})
			return db.Tx(later, "stock", write(nil))
		})
	})
	if err != nil {
		t.Error(err)
	}
	tr.want(t, "raise", "raise", "read", "begin", "check", "rollback", "begin", "check", "write", "commit")
}

// What the work is handed: the token, and a context that ends with the hold.
func TestDoContext(t *testing.T) {
	t.Parallel()
	l := newLock(t.Context())
	err := fence.Do(t.Context(), l, &fence.Gate{}, "stock", func(ctx context.Context) error {
		if token, ok := fence.Token(ctx, "stock"); !ok || token != 7 {
			t.Errorf("Token = %d, %v", token, ok)
		}
		if token, ok := fence.Token(ctx, "orders"); ok {
			t.Errorf("Token = %d of another resource", token)
		}
		l.hold.end(errLost)
		<-ctx.Done()
		wantErr(t, context.Cause(ctx), errLost)
		l.release = errLost
		return errBody
	})
	wantErr(t, err, errBody, errLost)
	l.want(t, "acquire", "release")
}

// Under ends with the hold and with the context that it is given, whose values
// and deadline it keeps.
func TestUnder(t *testing.T) {
	t.Parallel()
	type key struct{}
	l := newLock(t.Context())
	deadline := time.Now().Add(time.Hour)
	ctx, cancel := context.WithDeadline(context.WithValue(t.Context(), key{}, "value"), deadline)
	defer cancel()
	err := fence.Under(ctx, l.hold, &fence.Gate{}, "stock", func(ctx context.Context) error {
		if d, ok := ctx.Deadline(); !ok || !d.Equal(deadline) || ctx.Value(key{}) != "value" {
			t.Errorf("Deadline = %v, %v; value %v", d, ok, ctx.Value(key{}))
		}
		cancel()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	wantErr(t, err, context.Canceled)
	err = fence.Under(t.Context(), l.hold, &fence.Gate{}, "stock", func(ctx context.Context) error {
		l.hold.end(errLost)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	wantErr(t, err, errLost)
	l.hold.exclusive = false
	wantErr(t, fence.Under(t.Context(), l.hold, &fence.Gate{}, "stock", func(context.Context) error { return nil }), fence.ErrShared)
	l.want(t)
}

// checker is a Checker that is none of this package.
type checker struct{ *trace }

func (c checker) Do(ctx context.Context, resource string, token int64, fn func(context.Context) error) error {
	c.add(fmt.Sprintf("%s %d", resource, token))
	return fn(ctx)
}

// A caller's own Checker need not know how a context carries a token. It is never
// called without a token or without a name.
func TestDoOwnChecker(t *testing.T) {
	t.Parallel()
	l := newLock(t.Context())
	at := checker{&trace{}}
	err := fence.Do(t.Context(), l, at, "stock", func(ctx context.Context) error {
		if token, ok := fence.Token(ctx, "stock"); !ok || token != 7 {
			t.Errorf("Token = %d, %v", token, ok)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	never := func(context.Context) error { t.Error("it ran"); return nil }
	if err := fence.Do(t.Context(), l, at, "", never); err == nil {
		t.Error("a resource without a name was accepted")
	}
	l.hold.token = 0
	wantErr(t, fence.Do(t.Context(), l, at, "stock", never), fence.ErrNoToken)
	at.want(t, "stock 7")
}

// A context carries the tokens of several resources, and of each the innermost.
func TestToken(t *testing.T) {
	t.Parallel()
	if token, ok := fence.Token(t.Context(), "a"); ok {
		t.Errorf("Token = %d of an empty context", token)
	}
	var gate fence.Gate
	err := gate.Do(t.Context(), "a", 5, func(ctx context.Context) error {
		return gate.Do(ctx, "b", 9, func(ctx context.Context) error {
			for resource, want := range map[string]int64{"a": 5, "b": 9} {
				if token, ok := fence.Token(ctx, resource); !ok || token != want {
					t.Errorf("Token(%q) = %d, %v, want %d", resource, token, ok, want)
				}
			}
			return new(fence.Gate).Do(ctx, "a", 6, func(ctx context.Context) error {
				if token, ok := fence.Token(ctx, "a"); !ok || token != 6 {
					t.Errorf("Token = %d, %v; the innermost counts", token, ok)
				}
				return nil
			})
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// Without a Checker nothing runs, and no lock is taken.
func TestNoChecker(t *testing.T) {
	t.Parallel()
	l := newLock(t.Context())
	never := func(context.Context) error { t.Error("it ran"); return nil }
	for name, err := range map[string]error{
		"Do":    fence.Do(t.Context(), l, nil, "stock", never),
		"Under": fence.Under(t.Context(), l.hold, nil, "stock", never),
	} {
		if err == nil || err.Error() != "fence: the Checker is nil; pass a fence.Database, a *fence.Gate or a fence.Remote" {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.want(t)
}

// Any context will do for Under: fn's has its values, and ends with it or the hold.
func TestUnderAnyContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	for _, first := range []string{"hold", "context"} {
		l := newLock(t.Context())
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		err := fence.Under(ctx, l.hold, &fence.Gate{}, "stock", func(ctx context.Context) error {
			if ctx.Value(key{}) != "v" || ctx.Err() != nil {
				t.Errorf("%s: value %v, %v", first, ctx.Value(key{}), ctx.Err())
			}
			if first == "hold" {
				l.hold.end(errLost)
			} else {
				cancel()
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		wantErr(t, err, map[string]error{"hold": errLost, "context": context.Canceled}[first])
		cancel()
	}
}

// Two resources under one hold: one Under inside the other, and the inner context
// carries the token for both.
func TestUnderTwoResources(t *testing.T) {
	t.Parallel()
	l := newLock(t.Context())
	shop, bank := &fence.Gate{}, &fence.Gate{}
	err := fence.Under(t.Context(), l.hold, shop, "stock", func(ctx context.Context) error {
		return fence.Under(ctx, l.hold, bank, "accounts", func(ctx context.Context) error {
			for _, resource := range []string{"stock", "accounts"} {
				if token, ok := fence.Token(ctx, resource); !ok || token != 7 {
					t.Errorf("%s: token %d", resource, token)
				}
			}
			return nil
		})
	})
	if err != nil || shop.Newest("stock") != 7 || bank.Newest("accounts") != 7 {
		t.Errorf("%v, %d, %d", err, shop.Newest("stock"), bank.Newest("accounts"))
	}
}

// Without a function there is nothing to fence: no lock is taken, and no token raised.
func TestNoFunction(t *testing.T) {
	t.Parallel()
	l, gate := newLock(t.Context()), &fence.Gate{}
	_, db := openStore(t, l.trace, 0)
	remote := fence.Remote{Client: http.DefaultClient, URL: "http://unused"}
	for name, err := range map[string]error{
		"Do":          fence.Do(t.Context(), l, gate, "a", nil),
		"Under":       fence.Under(t.Context(), l.hold, gate, "a", nil),
		"Tx":          fence.Tx(t.Context(), l, db, "a", nil),
		"Gate.Do":     gate.Do(t.Context(), "a", 7, nil),
		"Remote.Do":   remote.Do(t.Context(), "a", 7, nil),
		"Database.Do": db.Do(t.Context(), "a", 7, nil),
		"Database.Tx": db.Tx(t.Context(), "a", nil),
	} {
		if err == nil || err.Error() != "fence: the function is nil; pass the work to do with the token" {
			t.Errorf("%s of a nil function: %v", name, err)
		}
	}
	if gate.Newest("a") != 0 {
		t.Error("a token was raised")
	}
	l.want(t)
}
