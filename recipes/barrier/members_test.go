package barrier_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

// lagging runs f with a client of the leader and one of a member that is 3 s behind.
func lagging(t *testing.T, f func(t *testing.T, e *zktest.Ensemble, leading, behind *client.Client)) {
	t.Helper()
	testrig.Ensemble(t, func(ctx context.Context, t *testing.T, e *zktest.Ensemble) {
		testrig.Check(t, e.ChangeLeader(1))
		_, err := e.AwaitLeader(ctx)
		testrig.Check(t, err)
		a := testrig.Connect(ctx, t, "zk1:2181", e.Client("a").DialContext)
		b := testrig.Connect(ctx, t, "zk3:2181", e.Client("b").DialContext)
		e.Server(3).Lag(3 * time.Second)
		f(t, e, a, b)
	}, zktest.WithTick(2*time.Second))
}

// java puts a node as Curator's members do.
func (r *rig) java(name string) {
	r.Helper()
	r.Check(r.Srv.Create(path+"/"+name, []byte("10.0.0.7")))
}

const low, high = "00000000-0000-4000-8000-000000000001", "ffffffff-ffff-4fff-bfff-fffffffffff1"

// View lists the members that stand, and the names of the missing ones.
func TestView(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a", client.WithDefaultData([]byte("10.0.0.1")))
		b := r.double(c, 3, barrier.WithMemberName("w1"))
		v, err := b.View(r.Ctx)
		r.Check(err)
		if len(v.Members) != 0 || v.Open || v.Needed != 3 {
			r.Errorf("%+v", v)
		}
		one := r.enter(r.Ctx, b)
		r.standing(1)
		r.java(high)
		r.Check(r.Srv.Create(path+"/note", nil))
		v, err = b.View(r.Ctx)
		r.Check(err)
		if len(v.Members) != 2 || v.Open {
			r.Fatalf("%+v", v)
		}
		m := v.Members[0]
		if m.Name != "w1" || m.Count != 3 || string(m.Data) != "10.0.0.1 members=3 name=w1" || m.Session == 0 || m.Since.IsZero() {
			r.Errorf("%+v", m)
		}
		if j := v.Members[1]; j.Name != "" || j.Count != 0 || string(j.Data) != "10.0.0.7" || j.Path != path+"/"+high {
			r.Errorf("%+v", j)
		}
		if missing := v.Missing("w1", "w2", "w3"); !slices.Equal(missing, []string{"w2", "w3"}) {
			r.Errorf("missing %v", missing)
		}
		waiting(r, one) // the note is not counted
		second := r.enter(r.Ctx, r.double(c, 3))
		r.inside(one, second)
	})
}

// Members for different numbers: the one that comes later is told, and the name of the
// other is in the error. A member of Curator's writes no number.
func TestMemberCount(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, d := r.Connect("a"), r.Connect("b")
		one := r.enter(r.Ctx, r.double(c, 3, barrier.WithMemberName("w1")))
		name := r.standing(1)[0]
		waiting(r, one) // w1 has looked, so the other member is the one that finds out
		_, err := r.double(d, 2).Enter(r.Ctx)
		testrig.WantErr(t, err, barrier.ErrMemberCount)
		e := (*barrier.MemberCountError)(nil)
		if !errors.As(err, &e) || e.Node != name || e.Member != "w1" || e.Theirs != 3 || e.Ours != 2 {
			r.Errorf("%+v", e)
		}
		if text := err.Error(); !strings.Contains(text, "for 2 members here and for 3 in "+name+" (w1)") {
			r.Error(text)
		}
		if text := (&barrier.MemberCountError{Ours: 1}).Error(); !strings.Contains(text, "for 1 member here") {
			r.Error(text)
		}
		r.standing(1)
		waiting(r, one)
		r.java(high)
		r.inside(one, r.enter(r.Ctx, r.double(c, 3)))
		// And one that comes while a round is open.
		_, err = r.double(d, 2).Enter(r.Ctx)
		testrig.WantErr(t, err, barrier.ErrMemberCount)
		if !errors.As(err, &e) || e.Node != "ready" {
			r.Errorf("%+v", e)
		}
	})
}

// With rounds a member that comes too early waits for the next round. A member of
// Curator's among them passes as in Curator, and the others wait for it.
func TestRounds(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, d := r.Connect("a"), r.Connect("b")
		a, b := r.double(c, 2, barrier.WithRounds()), r.double(d, 2, barrier.WithRounds())
		ms := r.inside(r.enter(r.Ctx, a), r.enter(r.Ctx, b))
		early := r.enter(r.Ctx, a)
		waiting(r, early)
		r.standing(2) // it has no node meanwhile
		r.java(high)
		left := []<-chan error{r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1])}
		waiting(r, left[0])
		waiting(r, left[1])
		r.Check(r.Srv.Delete(path + "/" + high))
		r.gone(left...)
		waiting(r, early)
		ms = r.inside(early, r.enter(r.Ctx, b))
		r.gone(r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1]))
		r.clean()
	})
}

// Close leaves without waiting. The others go on without this member.
func TestClose(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		ms := r.inside(r.enter(r.Ctx, r.double(c, 2)), r.enter(r.Ctx, r.double(c, 2)))
		r.Check(ms[0].Close())
		r.Check(ms[0].Close())
		testrig.WantErr(t, ms[0].Err(), barrier.ErrLeft)
		testrig.WantErr(t, ms[0].Leave(r.Ctx), barrier.ErrLeft)
		r.Check(ms[1].Err())
		r.gone(r.leave(r.Ctx, ms[1]))
		r.Check(ms[1].Close())
		r.clean()
	})
}

// A member passes Leave only when all members that stood have left, wherever
// their names sort. A member that comes with a later node does not hold it up.
func TestLeaveOrder(t *testing.T) {
	t.Parallel()
	for _, other := range []string{low, high} {
		bubble(t, func(r *rig) {
			c := r.Connect("a")
			r.Check(r.Srv.Create("/job", nil))
			r.Check(r.Srv.Create(path, nil))
			r.java(other)
			ms := r.inside(r.enter(r.Ctx, r.double(c, 2)))
			left := r.leave(r.Ctx, ms[0])
			waiting(r, left)
			want := 1 // the lowest keeps its node
			if other == high {
				want = 2
			}
			r.standing(want)
			later := "77777777-7777-4777-8777-777777777777"
			r.java(later)
			r.Check(r.Srv.Delete(path + "/" + other)) // and it comes again, as one object of Curator's does
			r.java(other)
			r.gone(left)
			r.Check(r.Srv.Delete(path + "/" + other))
			r.Check(r.Srv.Delete(path + "/" + later))
			r.Check(r.Srv.Delete(ready)) // Curator's member has come into the open round
			r.clean()
		})
	}
}

// Options and paths that cannot be.
func TestRefusedArguments(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		for what, f := range map[string]func() error{
			"no client":    func() error { _, err := barrier.NewDistributedBarrier(nil, gate); return err },
			"the root":     func() error { _, err := barrier.NewDistributedBarrier(c, "/"); return err },
			"a bad path":   func() error { _, err := barrier.NewDistributedDoubleBarrier(c, "x//", 1); return err },
			"no members":   func() error { _, err := barrier.NewDistributedDoubleBarrier(c, path, 0); return err },
			"an empty ACL": func() error { _, err := barrier.NewDistributedBarrier(c, gate, barrier.WithNodeACL()); return err },
			"a bad name": func() error {
				_, err := barrier.NewDistributedDoubleBarrier(c, path, 1, barrier.WithMemberName("a b"))
				return err
			},
			"an empty name": func() error {
				_, err := barrier.NewDistributedDoubleBarrier(c, path, 1, barrier.WithMemberName(""))
				return err
			},
		} {
			if err := f(); err == nil || !strings.HasPrefix(err.Error(), "barrier: ") {
				r.Errorf("%s: %v", what, err)
			}
		}
	})
}
