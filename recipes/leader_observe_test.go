package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// seer follows an election, and tells what it has seen.
type seer struct {
	r    *rig
	seen chan recipes.Leadership
	errs chan error
	stop context.CancelFunc
	done chan struct{}
}

func (r *rig) observe(e *recipes.Election) *seer {
	ctx, cancel := context.WithCancel(r.Ctx)
	s := &seer{r, make(chan recipes.Leadership, 100), make(chan error, 100), cancel, make(chan struct{})}
	go func() {
		defer close(s.done)
		for now, err := range e.Observe(ctx) {
			if err != nil {
				s.errs <- err
				continue
			}
			s.seen <- now
		}
	}()
	return s
}

// next is what is seen next.
func (s *seer) next() recipes.Leadership {
	s.r.Helper()
	select {
	case now := <-s.seen:
		return now
	case err := <-s.errs:
		s.r.Fatal(err)
	case <-time.After(time.Minute):
		s.r.Fatal("nothing is seen")
	}
	return recipes.Leadership{}
}

// want checks the leader that is seen next: "" is none.
func (s *seer) want(id string, term *recipes.Term, doubt bool) {
	s.r.Helper()
	now := s.next()
	ok := now.Leader.ID == id && now.Vacant == (id == "") && now.InDoubt == doubt
	if term != nil {
		ok = ok && now.Term == term.FencingToken() && now.Leader.Path == term.Path()
	}
	if !ok {
		s.r.Errorf("saw %v, want %q, in doubt %v", now, id, doubt)
	}
}

// An observer sees each leader and each time without a leader, from before the
// first campaign on. It leaves no watch.
func TestObserve(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		one, two := r.latch(r.Connect("a"), "one"), r.latch(r.Connect("b"), "two")
		s := r.observe(r.latch(r.Connect("o"), ""))
		s.want("", nil, false)
		first := r.leads(one)
		s.want("one", first, false)
		waits := r.campaign(r.Ctx, two, 2)
		r.Check(first.Close())
		next := <-waits
		r.Check(next.err)
		s.want("two", next.term, false)
		r.Check(next.term.Close())
		s.want("", nil, false)
		r.Check(r.Srv.Delete(leaders))
		again := r.leads(one)
		s.want("one", again, false)
		s.stop()
		<-s.done
		r.Check(again.Close())
		time.Sleep(5 * time.Second)
		r.WantNoWatch()
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// An observer that was cut off says that it is in doubt. Then it sees what is
// true: the leader has changed, and the observer's own session was lost. (etcd's
// watchers keep a dead leader.)
func TestObserveGap(t *testing.T) {
	t.Parallel()
	for _, long := range []bool{false, true} {
		bubble(t, func(r *rig) {
			one, two := r.latch(r.Connect("a"), "one"), r.latch(r.Connect("b"), "two")
			first := r.leads(one)
			waits := r.campaign(r.Ctx, two, 2)
			s := r.observe(r.latch(r.Connect("o"), ""))
			s.want("one", first, false)
			r.Srv.Client("o").Partition()
			s.want("one", first, true)
			r.Check(first.Close())
			next := <-waits
			r.Check(next.err)
			if long {
				time.Sleep(3 * testrig.SessionTimeout)
			}
			r.Srv.Client("o").Heal()
			s.want("two", next.term, false)
			r.Check(next.term.Close())
			s.want("", nil, false)
			s.stop()
			<-s.done
		})
	}
}

// An observer whose process also leads sees that its own node, of its lost session, is in
// doubt until the servers delete it.
func TestObserveOwnGhost(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		e := r.latch(c, "one")
		term := r.leads(e)
		s := r.observe(e)
		s.want("one", term, false)
		r.Srv.Client("a").Partition()
		s.want("one", term, true)
		for now := range c.States(r.Ctx) {
			if now.State == client.Lost {
				break
			}
		}
		testrig.WantErr(t, term.Err(), recipes.ErrLost)
		r.Srv.Client("a").Heal()
		now := s.next()
		for ; !now.Vacant; now = s.next() {
			if !now.InDoubt {
				r.Errorf("saw %v", now)
			}
		}
		testrig.WantErr(t, term.Close(), recipes.ErrLost)
		s.stop()
		<-s.done
	})
}

// An observer asks the server to catch up once for each connection, not for each leader.
func TestObserveSyncsOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		one := r.latch(r.Connect("a"), "one")
		s := r.observe(r.latch(r.Connect("o"), ""))
		s.want("", nil, false)
		for connections := 1; connections <= 2; connections++ {
			for range 3 {
				term := r.leads(one)
				s.want("one", term, false)
				r.Check(term.Close())
				s.want("", nil, false)
			}
			syncs := 0
			for _, q := range r.Srv.Log() {
				if q.Op == zktest.OpSync && q.Client == "o" {
					syncs++
				}
			}
			if syncs != connections {
				r.Errorf("%d syncs on %d connections", syncs, connections)
			}
			r.Srv.Client("o").Cut()
			s.want("", nil, true)
			s.want("", nil, false)
		}
		s.stop()
		<-s.done
	})
}

// A leader whose node may not be read is seen as such, and so is its end.
func TestObserveUnreadable(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.Check(r.Srv.Create("/leaders", nil))
		r.Check(r.Srv.Create(leaders, nil))
		acl := zk.WorldACL(zk.PermAll &^ zk.PermRead)
		term := r.leads(r.latch(r.Connect("a"), "secret", recipes.WithNodeACL(acl...)))
		s := r.observe(r.latch(r.Connect("o"), ""))
		if now := s.next(); !now.Leader.Unreadable || now.Term != 0 || now.Vacant || now.Leader.Path != term.Path() {
			r.Errorf("saw %+v", now)
		}
		r.Check(term.Close())
		s.want("", nil, false)
		s.stop()
		<-s.done
	})
}

// The end of the client ends an observation with an error, and the end of the loop all
// that it needs.
func TestObserveEnds(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("o")
		e := r.latch(c, "")
		for now, err := range e.Observe(r.Ctx) {
			if r.Check(err); !now.Vacant {
				r.Errorf("saw %v", now)
			}
			break
		}
		testrig.WantNoGoroutine(t, ourFrames)
		s := r.observe(e)
		s.want("", nil, false)
		r.Check(c.Close())
		<-s.done
		select {
		case err := <-s.errs:
			testrig.WantErr(t, err, client.ErrClosed)
		default:
			r.Error("it ended without an error")
		}
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// Without a leader, Leader says so, also on a path that is not there
// (TestLeaderLatch.testUncreatedPathGetLeader).
func TestNoLeader(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		e := r.latch(r.Connect("a"), "a")
		_, err := e.Leader(r.Ctx)
		testrig.WantErr(t, err, recipes.ErrNoParticipant)
		all, err := e.Participants(r.Ctx)
		if r.Check(err); len(all) != 0 {
			r.Errorf("%v", all)
		}
		var of *recipes.LockError
		if _, err := e.Leader(r.Ctx); !errors.As(err, &of) || of.Path != leaders {
			r.Errorf("%v", err)
		}
	})
}
