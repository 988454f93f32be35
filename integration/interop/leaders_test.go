package interop_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/harness"
	"github.com/docent-go/docent/integration/peers"
	"github.com/docent-go/docent/integration/sessions"
	"github.com/docent-go/docent/recipes"
)

// docentLeader is how to lead.
func docentLeader(e *recipes.Election, name string) acquirer {
	return func(ctx context.Context, patience time.Duration) (*grant, error) {
		h, err := patient(ctx, campaigning{e}, patience)
		if err != nil {
			return nil, err
		}
		return granted(h, claim{lock: name, nodes: []string{h.Path()}, token: h.FencingToken()}), nil
	}
}

// campaigning is an election as a lock.
type campaigning struct{ *recipes.Election }

func (e campaigning) Acquire(ctx context.Context) (*recipes.Term, error) { return e.Campaign(ctx) }
func (e campaigning) TryAcquire(ctx context.Context) (*recipes.Term, error) {
	return e.TryCampaign(ctx)
}

// curatorLeaders makes contenders that are participants of Curator's, one for each
// thread. A selector whose session ends while it waits does not come back by itself.
func curatorLeaders(lock, kind, path string) foreign {
	f := curatorLock(lock, kind, path)
	f.limit, f.perThread = true, true
	return f
}

func latchLoad(ctx context.Context, t *testing.T, a *arena) {
	ours, err := natives(a.docents(ctx, t, 2), func(p *party) (acquirer, error) {
		l, err := recipes.NewLeaderLatch(p.client, a.path)
		if err != nil {
			return nil, err
		}
		return docentLeader(l.Election, "latch"), nil
	})
	check(t, err)
	theirs, err := curatorLeaders("latch", "latch", a.path).contenders(ctx, a.curators(ctx, t, 2))
	check(t, err)
	a.run(ctx, t, append(ours, theirs...))
}

func selectorLoad(ctx context.Context, t *testing.T, a *arena) {
	ours, err := natives(a.docents(ctx, t, 2), func(p *party) (acquirer, error) {
		s, err := recipes.NewLeaderSelector(p.client, a.path)
		if err != nil {
			return nil, err
		}
		return docentLeader(s.Election, "selector"), nil
	})
	check(t, err)
	theirs, err := curatorLeaders("selector", "selector", a.path).contenders(ctx, a.curators(ctx, t, 2))
	check(t, err)
	a.run(ctx, t, append(ours, theirs...))
}

// TestLeaderNotice pauses a leader of Curator's until its session is over and Docent
// leads. When Curator goes on, it hears by the state of its connection, and until then
// both believe to lead; that is printed. Then it is the other way round: Docent's session
// is killed, and Docent's leader is told.
func TestLeaderNotice(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	node := harness.StartServer(ctx, t, harness.WithTickTime(500*time.Millisecond))
	const timeout = 5 * time.Second
	connect := func() *client.Client {
		c, err := client.Connect(ctx, node.Addr(), client.WithSessionTimeout(timeout), client.WithLogger(slog.New(slog.DiscardHandler)))
		check(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	ours := connect()
	latch, err := recipes.NewLeaderLatch(ours, "/notice")
	check(t, err)
	java := peers.StartJava(ctx, t)
	_, err = java.Connect(ctx, "c", node.Addr(), timeout)
	check(t, err)
	check(t, java.Make(ctx, "l", "c", "latch", "/notice"))
	th, asks := java.Thread("t"), java.Thread("asks")

	_, err = th.Acquire(ctx, "l", 1, peers.Forever)
	check(t, err)
	granted := make(chan error, 1)
	var term *recipes.Term
	go func() {
		var err error
		term, err = latch.Campaign(ctx)
		granted <- err
	}()
	awaitLine(ctx, t, latch.Election, 2)
	check(t, java.Pause())
	check(t, <-granted)
	led := time.Now()
	check(t, java.Unpause())
	believed, err := asks.Leads(ctx, "l")
	check(t, err)
	for still := believed; still; {
		still, err = asks.Leads(ctx, "l")
		check(t, err)
	}
	t.Logf("Curator's latch, paused until its session was over, believed to lead when it went on: %v; it gave that up within %v",
		believed, time.Since(led).Round(time.Millisecond))

	check(t, th.Release(ctx, "l")) // it stands in line again, by its own reset
	check(t, java.Make(ctx, "l2", "c", "latch", "/notice"))
	next := make(chan error, 1)
	go func() {
		_, err := java.Thread("u").Acquire(ctx, "l2", 1, peers.Forever)
		next <- err
	}()
	awaitLine(ctx, t, latch.Election, 2)
	s, err := ours.Session(ctx)
	check(t, err)
	check(t, sessions.KillSession(ctx, node.Addr(), s.ID()))
	<-term.Context().Done()
	if !errors.Is(term.Err(), recipes.ErrLost) {
		t.Errorf("a leader whose session was killed: %v", term.Err())
	}
	check(t, <-next)
}

// awaitLine waits until so many stand in line.
func awaitLine(ctx context.Context, t *testing.T, e *recipes.Election, n int) {
	t.Helper()
	for {
		all, err := e.Participants(ctx)
		check(t, err)
		if len(all) == n {
			return
		}
		<-time.After(20 * time.Millisecond) // no event tells
	}
}
