package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
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
	ctx, cancel := context.WithCancel(r.ctx)
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
		one, two := r.latch(r.connect("a"), "one"), r.latch(r.connect("b"), "two")
		s := r.observe(r.latch(r.connect("o"), ""))
		s.want("", nil, false)
		first := r.leads(one)
		s.want("one", first, false)
		waits := r.campaign(r.ctx, two, 2)
		r.check(first.Close())
		next := <-waits
		r.check(next.err)
		s.want("two", next.term, false)
		r.check(next.term.Close())
		s.want("", nil, false)
		r.check(r.srv.Delete(leaders))
		again := r.leads(one)
		s.want("one", again, false)
		s.stop()
		<-s.done
		r.check(again.Close())
		time.Sleep(5 * time.Second)
		if n := r.srv.WatchCount(); n != 0 {
			r.Errorf("%d watches left", n)
		}
		wantNoGoroutine(t)
	})
}

// An observer that was cut off says that it is in doubt. Then it sees what is
// true: the leader has changed, and the observer's own session was lost. (etcd's
// watchers keep a dead leader.)
func TestObserveGap(t *testing.T) {
	t.Parallel()
	for _, long := range []bool{false, true} {
		bubble(t, func(r *rig) {
			one, two := r.latch(r.connect("a"), "one"), r.latch(r.connect("b"), "two")
			first := r.leads(one)
			waits := r.campaign(r.ctx, two, 2)
			s := r.observe(r.latch(r.connect("o"), ""))
			s.want("one", first, false)
			r.srv.Client("o").Partition()
			s.want("one", first, true)
			r.check(first.Close())
			next := <-waits
			r.check(next.err)
			if long {
				time.Sleep(3 * sessionTimeout)
			}
			r.srv.Client("o").Heal()
			s.want("two", next.term, false)
			r.check(next.term.Close())
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
		c := r.connect("a")
		e := r.latch(c, "one")
		term := r.leads(e)
		s := r.observe(e)
		s.want("one", term, false)
		r.srv.Client("a").Partition()
		s.want("one", term, true)
		for now := range c.States(r.ctx) {
			if now.State == client.Lost {
				break
			}
		}
		wantErr(t, term.Err(), recipes.ErrLost)
		r.srv.Client("a").Heal()
		now := s.next()
		for ; !now.Vacant; now = s.next() {
			if !now.InDoubt {
				r.Errorf("saw %v", now)
			}
		}
		wantErr(t, term.Close(), recipes.ErrLost)
		s.stop()
		<-s.done
	})
}

// An observer asks the server to catch up once for each connection, not for each leader.
func TestObserveSyncsOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		one := r.latch(r.connect("a"), "one")
		s := r.observe(r.latch(r.connect("o"), ""))
		s.want("", nil, false)
		for connections := 1; connections <= 2; connections++ {
			for range 3 {
				term := r.leads(one)
				s.want("one", term, false)
				r.check(term.Close())
				s.want("", nil, false)
			}
			syncs := 0
			for _, q := range r.srv.Log() {
				if q.Op == zktest.OpSync && q.Client == "o" {
					syncs++
				}
			}
			if syncs != connections {
				r.Errorf("%d syncs on %d connections", syncs, connections)
			}
			r.srv.Client("o").Cut()
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
		r.check(r.srv.Create("/leaders", nil))
		r.check(r.srv.Create(leaders, nil))
		acl := zk.WorldACL(zk.PermAll &^ zk.PermRead)
		term := r.leads(r.latch(r.connect("a"), "secret", recipes.WithNodeACL(acl...)))
		s := r.observe(r.latch(r.connect("o"), ""))
		if now := s.next(); !now.Leader.Unreadable || now.Term != 0 || now.Vacant || now.Leader.Path != term.Path() {
			r.Errorf("saw %+v", now)
		}
		r.check(term.Close())
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
		c := r.connect("o")
		e := r.latch(c, "")
		for now, err := range e.Observe(r.ctx) {
			if r.check(err); !now.Vacant {
				r.Errorf("saw %v", now)
			}
			break
		}
		wantNoGoroutine(t)
		s := r.observe(e)
		s.want("", nil, false)
		r.check(c.Close())
		<-s.done
		select {
		case err := <-s.errs:
			wantErr(t, err, client.ErrClosed)
		default:
			r.Error("it ended without an error")
		}
		wantNoGoroutine(t)
	})
}

// Without a leader, Leader says so, also on a path that is not there
// (TestLeaderLatch.testUncreatedPathGetLeader).
func TestNoLeader(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		e := r.latch(r.connect("a"), "a")
		_, err := e.Leader(r.ctx)
		wantErr(t, err, recipes.ErrNoParticipant)
		all, err := e.Participants(r.ctx)
		if r.check(err); len(all) != 0 {
			r.Errorf("%v", all)
		}
		var of *recipes.LockError
		if _, err := e.Leader(r.ctx); !errors.As(err, &of) || of.Path != leaders {
			r.Errorf("%v", err)
		}
	})
}
