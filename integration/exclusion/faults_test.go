package exclusion_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/integration/harness"
)

// storm is one fleet on an ensemble in which things fail.
type storm struct {
	*fleet
	e   *harness.Ensemble
	raw *zk.Conn
}

// errElsewhere means that this holder is not the one to fail.
var errElsewhere = errors.New("the holder's server has another role")

// faults breaks servers and workers, each in the time of a holder that it
// concerns. None of the faults deceives a server about its leader: of that,
// partitions, other tests speak.
func faults(ctx context.Context, t *testing.T, e *harness.Ensemble) {
	raw, _ := harness.Dial(ctx, t, 20*time.Second, e.Addrs()...)
	const lock = "/faults"
	directory(t, raw, lock)
	s := &storm{launch(t, lock, e.ConnectString()), e, raw}
	await(ctx, t, s.witness, 3*workers*routines)

	began := time.Now()
	for _, c := range []struct {
		name string
		run  func(context.Context, *testing.T)
	}{
		{"the follower of a holder killed", s.killServer(harness.Follower)},
		{"the leader, a holder's server, killed", s.killServer(harness.Leader)},
		{"the follower of a holder frozen for 2 s", s.freezeServer(harness.Follower)},
		{"the leader, a holder's server, frozen for 2 s", s.freezeServer(harness.Leader)},
		{"a holder stopped for longer than its session", s.stopHolder},
		{"a busy holder stopped for longer than its session", s.stopBusyHolder},
		{"a holder killed", s.killHolder},
	} {
		at := time.Now()
		c.run(ctx, t)
		_, err := e.AwaitServing(ctx)
		check(t, err)
		await(ctx, t, s.witness, workers*routines)
		t.Logf("%s: after %v everything runs as before", c.name, time.Since(at).Round(time.Millisecond))
	}
	s.during(ctx, t, span-time.Since(began))

	out := s.stop(ctx, t)
	seen, turns, _ := s.witness.now()
	t.Logf("workers: %v", &out)
	t.Logf("witness: %d opens, %d closes; %s", seen.opens, seen.closes, fairness(turns))
	t.Logf("while another had not closed: %d opens, %d of them while that one believed to hold; old tokens refused: %d opens, %d late writes (%d came before the successor)",
		seen.overlaps, len(seen.deceived), seen.refused, seen.lateRefused, seen.lateAccepted)
	s.judge(t, out)
	if out.Lost == 0 || seen.overlaps == 0 {
		t.Errorf("%d holds lost, %d taken over: the faults hit no holder", out.Lost, seen.overlaps)
	}
	clean(ctx, t, e, raw, lock)
}

// whileHeld runs f in the time of the next holder and returns what it does.
func (s *storm) whileHeld(ctx context.Context, t *testing.T, f func(report) error) error {
	t.Helper()
	ctx, cancel := limit(ctx)
	defer cancel()
	done := make(chan error, 1)
	s.witness.atNextOpen(func(r report) time.Duration {
		done <- f(r)
		return 0
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		t.Fatal("no contender takes the lock any more")
		return nil
	}
}

// whileHeldOn runs f in the time of the next holder whose server has that
// role.
func (s *storm) whileHeldOn(ctx context.Context, t *testing.T, role harness.Role, f func(*harness.Node) error) *harness.Node {
	t.Helper()
	for {
		var home *harness.Node
		err := s.whileHeld(ctx, t, func(r report) error {
			var err error
			if home, err = s.home(ctx, r.Node); err != nil {
				return err
			}
			if is, err := home.Role(ctx); err != nil || is != role {
				return errors.Join(err, errElsewhere)
			}
			return f(home)
		})
		if !errors.Is(err, errElsewhere) {
			check(t, err)
			return home
		}
	}
}

// home finds the server that the owner of a node is connected to.
func (s *storm) home(ctx context.Context, node string) (*harness.Node, error) {
	_, stat, err := s.raw.Exists(node)
	if err != nil {
		return nil, err
	}
	id := fmt.Sprintf("sid=0x%x,", uint64(stat.EphemeralOwner))
	for _, n := range s.e.Nodes() {
		cons, err := n.FourLetter(ctx, "cons")
		if err != nil {
			return nil, err
		}
		if strings.Contains(cons, id) {
			return n, nil
		}
	}
	return nil, errElsewhere // it is on its way
}

func (s *storm) killServer(role harness.Role) func(context.Context, *testing.T) {
	return func(ctx context.Context, t *testing.T) {
		n := s.whileHeldOn(ctx, t, role, func(n *harness.Node) error { return n.Kill(ctx) })
		await(ctx, t, s.witness, workers) // the two that are left serve
		check(t, n.Start(ctx))
	}
}

func (s *storm) freezeServer(role harness.Role) func(context.Context, *testing.T) {
	return func(ctx context.Context, t *testing.T) {
		n := s.whileHeldOn(ctx, t, role, func(n *harness.Node) error { return n.Pause(ctx) })
		s.during(ctx, t, 2*time.Second)
		check(t, n.Unpause(ctx))
	}
}

// stopHolder stops a process that holds the lock for longer than its session
// lives.
func (s *storm) stopHolder(ctx context.Context, t *testing.T) {
	var victim int
	check(t, s.whileHeld(ctx, t, func(r report) error {
		victim = r.Worker
		return s.signal(victim, syscall.SIGSTOP)
	}))
	s.wake(ctx, t, victim)
}

// stopBusyHolder stops the holder in the middle of a computation on the only
// processor of its process. So the holder asks its hold before a timer or
// anything else in the process can run.
func (s *storm) stopBusyHolder(ctx context.Context, t *testing.T) {
	for {
		holder := make(chan int, 1)
		s.witness.atNextOpen(func(r report) time.Duration {
			holder <- r.Worker
			if r.Worker%2 == 0 {
				return 0
			}
			return sessionTimeout / 4
		})
		select {
		case victim := <-holder:
			if victim%2 == 0 {
				continue
			}
			s.during(ctx, t, sessionTimeout/8) // in the midst of it
			check(t, s.signal(victim, syscall.SIGSTOP))
			s.wake(ctx, t, victim)
			return
		case <-ctx.Done():
			t.Fatal("no contender takes the lock any more")
		}
	}
}

// wake lets a stopped holder go on after its session. It must see that it
// holds nothing before it does anything, and if it did something
// nevertheless, its token must be refused.
func (s *storm) wake(ctx context.Context, t *testing.T, victim int) {
	t.Helper()
	at := time.Now()
	before, _, _ := s.witness.now()
	s.takenOver(ctx, t, at)
	s.during(ctx, t, sessionTimeout+time.Second-time.Since(at))
	check(t, s.signal(victim, syscall.SIGCONT))
	for {
		seen, _, changed := s.witness.now()
		if len(seen.deceived) > 0 || seen.lateAccepted > before.lateAccepted {
			t.Fatalf("the stopped holder went on: %v", seen.deceived)
		}
		if seen.lateRefused > before.lateRefused {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatal("the stopped holder is not heard of again")
		}
	}
}

func (s *storm) killHolder(ctx context.Context, t *testing.T) {
	check(t, s.whileHeld(ctx, t, func(r report) error { return s.signal(r.Worker, syscall.SIGKILL) }))
	s.takenOver(ctx, t, time.Now())
}

// takenOver waits for the next holder. It cannot come before the session of
// the last one may have expired, and should not come much later.
func (s *storm) takenOver(ctx context.Context, t *testing.T, at time.Time) {
	t.Helper()
	await(ctx, t, s.witness, 1)
	took := time.Since(at)
	t.Logf("taken over after %v", took.Round(time.Millisecond))
	if took > sessionTimeout+2*tick+2*time.Second {
		t.Errorf("taken over after %v, with a session timeout of %v", took, sessionTimeout)
	}
}
