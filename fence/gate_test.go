package fence_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/fence"
)

func TestGateCheck(t *testing.T) {
	t.Parallel()
	var gate fence.Gate
	for _, c := range []struct {
		resource string
		token    int64
		newest   int64 // seen, if the token is refused
	}{
		{"a", 5, 0},
		{"a", 5, 0}, // the same holder again
		{"a", 4, 5},
		{"b", 1, 0}, // another resource
		{"a", 6, 0},
		{"a", 5, 6},
		{"a", 1 << 62, 0},
		{"a", 6, 1 << 62},
	} {
		err := gate.Check(c.resource, c.token)
		if c.newest == 0 {
			if err != nil {
				t.Errorf("Check(%q, %d) = %v", c.resource, c.token, err)
			}
			continue
		}
		wantStale(t, err, fence.StaleError{Resource: c.resource, Token: c.token, Newest: c.newest})
	}
	if got := gate.Newest("a"); got != 1<<62 {
		t.Errorf("Newest = %d", got)
	}
	if got := gate.Newest("never seen"); got != 0 {
		t.Errorf("Newest = %d", got)
	}
}

func TestGateRefusesArguments(t *testing.T) {
	t.Parallel()
	var gate fence.Gate
	wantErr(t, gate.Check("a", 0), fence.ErrNoToken)
	wantErr(t, gate.Do(t.Context(), "a", -1, func(context.Context) error { return nil }), fence.ErrNoToken)
	if err := gate.Check("", 1); err == nil {
		t.Error("a resource without a name was accepted")
	}
}

// A newer holder ends the older one's write and waits for it.
func TestGateDoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var gate fence.Gate
		tr := &trace{}
		var all sync.WaitGroup
		all.Go(func() {
			err := gate.Do(t.Context(), "a", 5, func(ctx context.Context) error {
				tr.add("5 begins")
				<-ctx.Done()
				time.Sleep(time.Minute) // it does not return at once
				tr.add("5 ends")
				return context.Cause(ctx)
			})
			wantStale(t, err, fence.StaleError{Resource: "a", Token: 5, Newest: 6})
		})
		synctest.Wait()
		all.Go(func() {
			err := gate.Do(t.Context(), "a", 6, func(context.Context) error { tr.add("6"); return nil })
			wantStale(t, err, fence.StaleError{Resource: "a", Token: 6, Newest: 8}) // by the time it is let in
		})
		synctest.Wait()
		// The old holder comes again while the new one waits.
		err := gate.Do(t.Context(), "a", 5, func(context.Context) error { tr.add("5 again"); return nil })
		wantErr(t, err, fence.ErrStale)
		// One more waits for as long as it likes, and is seen all the same.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = gate.Do(ctx, "a", 7, func(context.Context) error { tr.add("7"); return nil })
		wantErr(t, err, context.DeadlineExceeded)
		tr.want(t, "5 begins")
		if got := gate.Newest("a"); got != 7 {
			t.Errorf("Newest = %d, want 7", got)
		}
		err = gate.Do(t.Context(), "a", 8, func(ctx context.Context) error {
			tr.add("8")
			return gate.Do(ctx, "a", 8, func(context.Context) error { tr.add("8 in 8"); return nil })
		})
		if err != nil {
			t.Error(err)
		}
		all.Wait()
		tr.want(t, "5 begins", "5 ends", "8", "8 in 8")
	})
}

// The holder that waited is stale when its turn comes.
func TestGateDoOvertaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var gate fence.Gate
		tr := &trace{}
		end := make(chan struct{})
		var all sync.WaitGroup
		do := func(token int64) {
			all.Go(func() {
				err := gate.Do(t.Context(), "a", token, func(context.Context) error {
					tr.add(string(rune('0' + token)))
					<-end
					return nil
				})
				if stale := errors.Is(err, fence.ErrStale); stale != (token == 6) {
					t.Errorf("token %d: %v", token, err)
				}
			})
			synctest.Wait()
		}
		do(5)
		do(6)
		do(7)
		close(end)
		all.Wait()
		tr.want(t, "5", "7")
	})
}

// A panic of a write lets the next one in.
func TestGateDoPanic(t *testing.T) {
	t.Parallel()
	var gate fence.Gate
	func() {
		defer func() { _ = recover() }()
		_ = gate.Do(t.Context(), "a", 1, func(context.Context) error { panic("at the till") })
	}()
	ran := false
	if err := gate.Do(t.Context(), "a", 2, func(context.Context) error { ran = true; return nil }); err != nil || !ran {
		t.Errorf("Do = %v, ran %v", err, ran)
	}
}

// Holders in random order, each writing several times, some of them late. A
// register behind a gate never sees an older token after a newer one, from the
// first instant of a write to its last. The newest holder is never refused.
func TestGateModel(t *testing.T) {
	t.Parallel()
	const seeds = 200
	refused, written := 0, 0
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			var gate fence.Gate
			var mu sync.Mutex
			var seen []int64 // tokens at begin and end of every write
			note := func(token int64) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, token)
			}
			const holders, writes = 5, 4
			var all sync.WaitGroup
			for token := int64(1); token <= holders; token++ {
				for range writes {
					at := time.Duration(r.IntN(20)) * time.Millisecond
					takes := time.Duration(r.IntN(5)) * time.Millisecond
					heeds := r.IntN(2) == 0
					all.Go(func() {
						time.Sleep(at)
						err := gate.Do(t.Context(), "register", token, func(ctx context.Context) error {
							note(token)
							if heeds {
								select {
								case <-ctx.Done():
								case <-time.After(takes):
								}
							} else {
								time.Sleep(takes)
							}
							note(token)
							return nil
						})
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							written++
							return
						}
						wantErr(t, err, fence.ErrStale)
						refused++
						if token == holders {
							t.Errorf("seed %d: the newest holder was refused: %v", seed, err)
						}
					})
				}
			}
			all.Wait()
			if !slices.IsSorted(seen) {
				t.Errorf("seed %d: tokens went back: %v", seed, seen)
			}
		})
	}
	t.Logf("%d writes done, %d refused", written, refused)
	if refused < seeds || written < seeds {
		t.Errorf("%d writes done, %d refused: the schedules do not test much", written, refused)
	}
}

// FuzzGate compares Check with the rule it stands for.
func FuzzGate(f *testing.F) {
	f.Add([]byte{1, 5, 1, 4, 2, 1, 1, 6})
	f.Fuzz(func(t *testing.T, calls []byte) {
		var gate fence.Gate
		newest := map[string]int64{}
		for ; len(calls) >= 2; calls = calls[2:] {
			resource, token := string('a'+rune(calls[0]%3)), int64(int8(calls[1]))
			err := gate.Check(resource, token)
			switch {
			case token <= 0:
				wantErr(t, err, fence.ErrNoToken)
			case token < newest[resource]:
				wantStale(t, err, fence.StaleError{Resource: resource, Token: token, Newest: newest[resource]})
			default:
				if err != nil {
					t.Errorf("Check(%q, %d) = %v after %d", resource, token, err, newest[resource])
				}
				newest[resource] = token
			}
			if got := gate.Newest(resource); got != newest[resource] {
				t.Errorf("Newest(%q) = %d, want %d", resource, got, newest[resource])
			}
		}
	})
}
