package client_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/zktest"
)

// history collects state changes. Sessions are numbered in the order in which
// they are seen.
type history struct {
	mu      sync.Mutex
	ids     []int64
	changes []client.StateChange
}

func (h *history) add(ch client.StateChange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, ch)
}

func (h *history) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, ch := range h.changes {
		s := ch.State.String()
		if ch.Session != 0 {
			if !slices.Contains(h.ids, ch.Session) {
				h.ids = append(h.ids, ch.Session)
			}
			s += fmt.Sprint(slices.Index(h.ids, ch.Session) + 1)
		}
		all = append(all, s)
	}
	return strings.Join(all, " ")
}

func (h *history) want(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	if got := h.String(); got != want {
		t.Errorf("states: %s\n  want: %s", got, want)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, ch := range h.changes {
		if wrong := ch.State == client.Suspended || ch.State == client.Lost; wrong != (ch.Err != nil) {
			t.Errorf("%v: error %v", ch.State, ch.Err)
		}
		if ch.State == client.Lost {
			testrig.WantErr(t, ch.Err, client.ErrSessionLost)
		}
		if i > 0 && ch.At.Before(h.changes[i-1].At) {
			t.Errorf("%v is earlier than %v", ch, h.changes[i-1])
		}
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var seen, told history
		c := r.Connect("a", client.WithObserver(client.Observer{StateChange: told.add}))
		var wg sync.WaitGroup
		wg.Go(func() {
			for ch := range c.States(r.Ctx) {
				seen.add(ch)
			}
		})
		synctest.Wait()
		const life = "connected1 suspended1 connected1 suspended1 lost1 connecting connected2 lost2 connecting connected3 closed"
		r.Srv.CutAll() // a blip
		_, _, err := c.Exists(r.Ctx, "/")
		r.Check(err)
		time.Sleep(time.Minute)
		r.Srv.Stop() // an outage of more than a session
		time.Sleep(time.Minute)
		if got := c.State(); got != client.Connecting {
			t.Errorf("in the outage: %v", got)
		}
		r.Srv.Resume()
		s := r.Session(c)
		r.Srv.Fail(zktest.Match{Op: zktest.OpExists}, zktest.CodeSessionExpired)
		_, _, _ = s.Exists(r.Ctx, "/") // the server says it to a request
		<-s.Context().Done()
		if r.Session(c).ID() == s.ID() {
			t.Error("the session was lost and is current")
		}
		r.Check(c.CloseContext(r.Ctx))
		wg.Wait()
		seen.want(t, life)
		told.want(t, "connecting "+life)
		if got := c.State(); got != client.Closed {
			t.Errorf("at last: %v", got)
		}
	})
}

// A reader that stands still holds up no other reader and misses nothing. The
// same holds for an observer.
func TestStatesStalledReader(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const blips = 500
		var told history
		stall := make(chan struct{})
		c := r.Connect("a", client.WithObserver(client.Observer{StateChange: func(ch client.StateChange) {
			<-stall
			told.add(ch)
		}}))
		var seen history
		var wg sync.WaitGroup
		reading := make(chan struct{})
		var once sync.Once
		wg.Go(func() {
			for ch := range c.States(r.Ctx) {
				once.Do(func() { close(reading) })
				<-stall
				seen.add(ch)
			}
		})
		<-reading
		for range blips {
			r.Srv.CutAll()
			_, _, err := c.Exists(r.Ctx, "/")
			r.Check(err)
		}
		time.AfterFunc(time.Second, func() { close(stall) })
		r.Check(c.CloseContext(r.Ctx))
		wg.Wait()
		want := "connected1" + strings.Repeat(" suspended1 connected1", blips) + " closed"
		seen.want(t, want)
		told.want(t, "connecting "+want)
	})
}

// States ends with its context, and starts at the present.
func TestStatesContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		ctx, cancel := context.WithCancel(r.Ctx)
		time.AfterFunc(time.Second, cancel)
		var seen history
		for ch := range c.States(ctx) {
			seen.add(ch)
		}
		seen.want(t, "connected1")
		for range c.States(r.Ctx) {
			break // not waiting for the next
		}
		r.Check(c.CloseContext(r.Ctx))
		var late history
		for ch := range c.States(r.Ctx) {
			late.add(ch)
		}
		late.want(t, "closed")
	})
}

// Hooks of operations run on the caller's goroutine with what it gave.
func TestObserverOperations(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var mu sync.Mutex
		var ops []client.OperationResult
		var retries []client.RetryInfo
		c := r.Connect("a", client.WithNamespace("ns"), client.WithRetry(retry.NTimes(5, 100*time.Millisecond)),
			client.WithObserver(client.Observer{
				Operation: ended(func(o client.OperationResult) { mu.Lock(); ops = append(ops, o); mu.Unlock() }),
				Retry:     func(_ context.Context, i client.RetryInfo) { mu.Lock(); retries = append(retries, i); mu.Unlock() },
			}))
		_, err := c.Create(r.Ctx, "/a", nil, client.WithParents())
		r.Check(err)
		r.Srv.Fail(zktest.Match{Op: zktest.OpGetData, Times: 2}, zktest.CodeThrottledOp)
		_, _, err = c.Get(r.Ctx, "/a")
		r.Check(err)
		_, _, missing := c.Get(r.Ctx, "/b")
		mu.Lock()
		defer mu.Unlock()
		if len(ops) != 3 || ops[0].Op != "create" || ops[1].Op != "get" || ops[1].Path != "/a" || ops[1].Err != nil ||
			ops[1].Duration < 200*time.Millisecond || ops[2].Err == nil || ops[2].Err.Error() != missing.Error() {
			t.Errorf("operations: %+v", ops)
		}
		if len(retries) != 2 || retries[0].Op != "get" || retries[0].Path != "/a" || retries[0].Attempt.N != 1 ||
			retries[1].Attempt.N != 2 || retries[0].Attempt.Pause != 100*time.Millisecond {
			t.Errorf("retries: %+v", retries)
		}
		testrig.WantErr(t, retries[0].Attempt.Err, client.ErrThrottled)
	})
}
