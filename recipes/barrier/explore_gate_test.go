package barrier_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

// gateRule says what has happened to the waiters of a barrier when all is at rest.
type gateRule struct {
	set     bool
	waiters []shortAt // shortWaits, shortDone or shortFailed
	clients []byte    // of the waiters
	lost    bool      // a session was lost
}

// gateCalls are those of a program: a set, a removal, both without a rest between them, a
// wait by a client, the end of the context of a waiter, and the loss of a client's session.
var gateCalls = []string{"set", "remove", "pulse", "wait a", "wait b", "cancel 0", "cancel 1", "lose a", "lose b"}

// play makes a call. It reports whether that makes sense.
func (g *gateRule) play(call string) bool {
	pass := func() {
		for i := range g.waiters {
			if g.waiters[i] == shortWaits {
				g.waiters[i] = shortDone
			}
		}
	}
	switch call {
	case "set":
		if g.set {
			return false
		}
		g.set = true
	case "remove", "pulse":
		if !g.set {
			return false
		}
		g.set = call == "pulse"
		pass()
	case "wait a", "wait b":
		if len(g.waiters) == 2 || len(g.waiters) == 0 && call == "wait b" {
			return false
		}
		g.clients = append(g.clients, call[5])
		if g.waiters = append(g.waiters, shortWaits); !g.set {
			pass()
		}
	case "cancel 0", "cancel 1":
		i := int(call[7] - '0')
		if i >= len(g.waiters) || g.waiters[i] != shortWaits {
			return false
		}
		g.waiters[i] = shortFailed
	case "lose a", "lose b":
		i := slices.Index(g.clients, call[5])
		if g.lost || i < 0 || g.waiters[i] != shortWaits {
			return false
		}
		g.lost = true
	}
	return true
}

// TestEveryShortProgramOfWaits plays every short program of a barrier. After each call all
// comes to rest, and those have passed that the rule names.
func TestEveryShortProgramOfWaits(t *testing.T) {
	t.Parallel()
	length := shortLength()
	played := 0
	var batch [][]string
	flush := func() {
		bubble(t, func(r *rig) {
			clients := map[byte]*client.Client{'a': r.Connect("a"), 'b': r.Connect("b")}
			for i, calls := range batch {
				if err := playGate(r, clients, fmt.Sprint("/gate/", i), calls); err != nil {
					r.Fatalf("program %q: %v", calls, err)
				}
			}
		}, zktest.WithSeed(1), zktest.WithLatency(0, 0))
		played += len(batch)
		batch = nil
	}
	var more func(calls []string)
	more = func(calls []string) {
		if len(calls) == length {
			if batch = append(batch, append([]string{}, calls...)); len(batch) == 30 {
				flush()
			}
			return
		}
		for _, call := range gateCalls {
			var g gateRule
			for _, before := range calls {
				g.play(before)
			}
			if g.play(call) && !t.Failed() {
				more(append(calls, call))
			}
		}
	}
	more(nil)
	flush()
	t.Logf("%d programs of %d calls, complete %v", played, length, !t.Failed())
}

func playGate(r *rig, clients map[byte]*client.Client, path string, calls []string) error {
	barriers := map[byte]*barrier.DistributedBarrier{}
	for name, c := range clients {
		b, err := barrier.NewDistributedBarrier(c, path)
		r.Check(err)
		barriers[name] = b
	}
	var rule gateRule
	var done []chan error
	var cancels []context.CancelFunc
	var at []shortAt
	for n, call := range calls {
		rest := time.Second
		switch call {
		case "set":
			r.Check(barriers['a'].Set(r.Ctx))
		case "remove":
			r.Check(barriers['a'].Remove(r.Ctx))
		case "pulse":
			r.Check(barriers['a'].Remove(r.Ctx))
			r.Check(barriers['a'].Set(r.Ctx))
		case "wait a", "wait b":
			ctx, cancel := context.WithCancel(r.Ctx)
			result := make(chan error, 1)
			done, cancels, at = append(done, result), append(cancels, cancel), append(at, shortWaits)
			go func() { result <- barriers[call[5]].Wait(ctx) }() // ends with ctx
		case "cancel 0", "cancel 1":
			cancels[call[7]-'0']()
		default:
			r.Srv.Client(call[5:]).ExpireSession()
			rest = 2 * testrig.SessionTimeout
		}
		time.Sleep(rest)
		synctest.Wait()
		rule.play(call)
		for i := range at {
			select {
			case err := <-done[i]:
				if at[i] = shortDone; err != nil {
					at[i] = shortFailed
				}
			default:
			}
			if at[i] != rule.waiters[i] {
				return fmt.Errorf("after call %d waiter %d %s, and by the rule it %s", n+1, i, shortPlaces[at[i]], shortPlaces[rule.waiters[i]])
			}
		}
	}
	for _, cancel := range cancels {
		cancel()
	}
	time.Sleep(5 * time.Second) // watches are removed in the background
	if n := r.Srv.WatchCount(); n > 0 {
		return fmt.Errorf("%d watches left", n)
	}
	return nil
}
