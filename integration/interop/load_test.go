package interop_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/integration/peers"
)

// loadTime may be less to see whether a change is caught.
var loadTime = flag.Duration("load", 60*time.Second, "how long each case of the matrix lasts")

const (
	quiet = 12 * time.Second // of the load, at its end: no session is killed any more
	stuck = 45 * time.Second // a wait in which something must have happened
)

// errPatience means that a contender gave up waiting, as it was told to.
var errPatience = errors.New("gave up")

// grant is what an acquire has brought.
type grant struct {
	claims  []claim
	release func(ctx context.Context) error

	err  func() error    // Docent's opinion whether it still holds
	lost <-chan struct{} // and its signal that it does not

	// downgrade, if any, makes a writer a reader, and returns the reader's grant;
	// finish is called when the witness knows the reader.
	downgrade func(ctx context.Context, token int64) (reader *grant, finish func(context.Context) error, err error)
	// during, if any, is what a holder does instead of working for a short while.
	during func(ctx context.Context)
}

// contender is one thread or goroutine that takes a lock again and again.
type contender struct {
	party   *party
	who     string
	acquire acquirer
	turn    func(ctx context.Context, c *contender) error // instead of an acquire and what follows
	// limited means that the contender must not wait for ever. Two threads of
	// Curator's that take several permits or several locks can wait for each
	// other. So can two threads that take one permit, if a session ends in the
	// middle.
	limited bool

	turns, late atomic.Int64 // all, and the ones after the last kill
	gaveUp      atomic.Int64
	failed      atomic.Int64 // acquires and releases around a kill
	longest     atomic.Int64 // wait that brought something
}

// run lets contenders take turns for the time of a load while sessions are killed.
func (a *arena) run(ctx context.Context, t *testing.T, all []*contender) {
	t.Helper()
	until, cancel := context.WithTimeout(ctx, *loadTime)
	defer cancel()
	a.calm = time.Now().Add(*loadTime - quiet)
	var group sync.WaitGroup
	group.Go(func() { a.killer(ctx, t) })
	for _, c := range all {
		group.Go(func() {
			for until.Err() == nil && !t.Failed() {
				turn := a.turn
				if c.turn != nil {
					turn = c.turn
				}
				if err := turn(ctx, c); err != nil {
					t.Errorf("%s: %v\nin line:\n%s", c.who, err, a.inLine())
					return
				}
				<-time.After(rand.N(4 * time.Millisecond)) // others have a chance
			}
		})
	}
	group.Wait()
	a.report(t, all)
}

// killer kills the sessions of all parties in turns until it shall be calm. Each
// second time it kills in the middle of a hold, if there is one before the next
// time.
func (a *arena) killer(ctx context.Context, t *testing.T) {
	t.Helper()
	calm, cancel := context.WithDeadline(ctx, a.calm)
	defer cancel()
	defer func() {
		for _, p := range a.parties {
			p.doomed.Store(false)
		}
	}()
	for i := 0; ; i++ {
		select {
		case <-calm.Done():
			return
		case <-time.After(500*time.Millisecond + rand.N(2*time.Second)):
		}
		p := a.parties[i%len(a.parties)]
		doomed := i/len(a.parties)%2 == 0 && !a.holdless
		p.doomed.Store(doomed)
		if doomed {
			continue
		}
		// Not within calm: a kill that has begun must end.
		if err := p.kill(ctx, a.witness, a.node.Addr()); err != nil {
			t.Errorf("kill the session of %s: %v", p.name, err)
			return
		}
	}
}

// turn is one acquire, the work and the release, as the witness sees them.
func (a *arena) turn(ctx context.Context, c *contender) error {
	patience := stuck
	switch {
	case rand.N(6) == 0:
		// A waiter behind a contender that gives up is woken without being the
		// first.
		patience = rand.N(time.Second)
	case c.limited:
		patience = time.Second + rand.N(2*time.Second)
	}
	epoch, calm := c.party.at()
	began := time.Now()
	g, err := c.acquire(ctx, patience)
	switch {
	case errors.Is(err, errPatience) && patience < stuck:
		c.gaveUp.Add(1)
		return nil
	case err != nil:
		return c.excuse("acquire", err, c.party.calmSince(epoch, calm))
	}
	entries, err := a.enter(c, g, epoch, calm)
	if err != nil {
		return err
	}
	a.had(c, time.Since(began))
	if g.downgrade != nil && rand.N(2) == 0 {
		return a.downgraded(ctx, c, g, entries, epoch, calm)
	}
	return a.leave(ctx, c, g, entries, epoch, calm)
}

// had counts a turn.
func (a *arena) had(c *contender, wait time.Duration) {
	c.turns.Add(1)
	c.longest.Store(max(c.longest.Load(), int64(wait)))
	if time.Now().After(a.calm) {
		c.late.Add(1)
	}
}

// enter shows the claims of a grant to the witness.
func (a *arena) enter(c *contender, g *grant, epoch int, calm bool) ([]*entry, error) {
	var entries []*entry
	for _, cl := range g.claims {
		found, err := a.look(cl.nodes)
		if err != nil {
			return nil, err
		}
		e := &entry{claim: cl, party: c.party, who: c.who}
		a.witness.open(e, found, c.party.calmSince(epoch, calm))
		entries = append(entries, e)
	}
	return entries, nil
}

// leave works for a while, ends the claims and releases.
func (a *arena) leave(ctx context.Context, c *contender, g *grant, entries []*entry, epoch int, calm bool) error {
	switch {
	case c.party.doomed.CompareAndSwap(true, false):
		if err := c.party.kill(ctx, a.witness, a.node.Addr()); err != nil {
			return fmt.Errorf("kill the contender's own session: %w", err)
		}
		<-time.After(rand.N(60 * time.Millisecond)) // others get in, and need not wait
	case g.during != nil:
		g.during(ctx)
	default:
		<-time.After(rand.N(a.work))
	}
	robbed := false
	for _, e := range entries {
		a.witness.write(e)
		if a.witness.close(e, g.err) {
			robbed = true
		}
	}
	if robbed && c.party.side == docent {
		if err := a.told(ctx, c, g, entries[0]); err != nil {
			return err
		}
	}
	if err := g.release(ctx); err != nil {
		return c.excuse("release", err, !robbed && c.party.calmSince(epoch, calm))
	}
	if robbed && c.party.side == docent {
		return fmt.Errorf("a release of a lost hold, %v, says nothing of the loss", entries[0])
	}
	return nil
}

// downgraded makes the writer a reader before it leaves.
func (a *arena) downgraded(ctx context.Context, c *contender, g *grant, entries []*entry, epoch int, calm bool) error {
	<-time.After(rand.N(3 * time.Millisecond)) // the writing
	writer := entries[0]
	a.witness.write(writer)
	a.witness.share(writer)
	r, finish, err := g.downgrade(ctx, writer.token)
	if err != nil {
		a.witness.close(writer, func() error { return nil }) // the release will say
		return errors.Join(c.excuse("downgrade", err, c.party.calmSince(epoch, calm)), c.excuse("release", g.release(ctx), false))
	}
	readers, err := a.enter(c, r, epoch, calm)
	if err != nil {
		return err
	}
	a.witness.close(writer, r.err)
	if err := finish(ctx); err != nil {
		if err := c.excuse("release after a downgrade", err, false); err != nil {
			return err
		}
	}
	return a.leave(ctx, c, r, readers, epoch, calm)
}

// told waits until Docent's holder knows that its session is over. It takes
// longest when the client comes back while the session is being killed. Then the
// server closes the session and leaves the new connection open, and only the next
// heartbeat finds out.
func (a *arena) told(ctx context.Context, c *contender, g *grant, e *entry) error {
	limit := time.NewTimer(2 * matrixTimeout)
	defer limit.Stop()
	select {
	case <-g.lost:
		a.witness.knew(e, c.party.sinceKill())
		return nil
	case <-limit.C:
		return fmt.Errorf("%v still believes to hold long after its session was killed", e)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// excuse returns err unless a kill explains it. calm says that there was none since the
// operation began.
func (c *contender) excuse(op string, err error, calm bool) error {
	switch {
	case err == nil:
		return nil
	case c.party.side == docent:
		if !calm && errors.Is(err, client.ErrSessionLost) {
			c.failed.Add(1)
			return nil
		}
	case c.party.recovering():
		if thrown := (*peers.Error)(nil); errors.As(err, &thrown) {
			c.failed.Add(1)
			return nil
		}
	}
	return fmt.Errorf("%s: %w", op, err)
}

// inLine lists the nodes below the arena's path.
func (a *arena) inLine() string {
	var out []string
	var list func(path string)
	list = func(path string) {
		names, _, err := a.raw.Children(path)
		if err != nil {
			out = append(out, fmt.Sprintf("%s: %v", path, err))
			return
		}
		for _, n := range names {
			_, stat, err := a.raw.Exists(path + "/" + n)
			if err == nil && stat != nil {
				out = append(out, fmt.Sprintf("%s/%s of %#x", path, n, uint64(stat.EphemeralOwner)))
			}
			if err == nil && stat != nil && stat.NumChildren > 0 {
				list(path + "/" + n)
			}
		}
	}
	list(a.path)
	return strings.Join(out, "\n")
}
