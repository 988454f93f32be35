package barrier_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/zktest"
)

// Five members enter together and leave together, on clients of their own
// (TestDistributedDoubleBarrier.testMultiClient), and with one (testBasic).
func TestTogether(t *testing.T) {
	t.Parallel()
	for _, clients := range []int{5, 1} {
		bubble(t, func(r *rig) {
			var cs []*client.Client
			for i := range clients {
				cs = append(cs, r.Connect(fmt.Sprint("c", i)))
			}
			for range 3 { // again and again
				var all []<-chan entered
				for i := range 5 {
					if i == 4 {
						r.standing(4)
						waiting(r, all[0])
					}
					all = append(all, r.enter(r.Ctx, r.double(cs[i%clients], 5)))
				}
				ms := r.inside(all...)
				r.layout(5)
				var left []<-chan error
				for i, m := range ms {
					r.Check(m.Err())
					if i == 4 {
						waiting(r, left[0])
						if len(r.Srv.Children(path)) > 3 { // the lowest, the one inside, ready
							r.Errorf("nodes %v", r.Srv.Children(path))
						}
					}
					left = append(left, r.leave(r.Ctx, m))
				}
				r.gone(left...)
				r.clean()
				testrig.WantErr(t, ms[0].Err(), barrier.ErrLeft)
				testrig.WantErr(t, ms[0].Leave(r.Ctx), barrier.ErrLeft)
			}
		})
	}
}

// layout checks the nodes against DistributedDoubleBarrier's.
func (r *rig) layout(n int) {
	r.Helper()
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	seen := 0
	for _, name := range r.Srv.Children(path) {
		node, _ := r.Srv.Node(path + "/" + name)
		switch {
		case name == "ready" && node.Stat.EphemeralOwner == 0:
		case uuid.MatchString(name) && node.Stat.EphemeralOwner != 0:
			seen++
		default:
			r.Errorf("node %s with owner %x", name, node.Stat.EphemeralOwner)
		}
		data, _, _ := bytes.Cut(node.Data, []byte(" counted="))
		if !bytes.HasSuffix(data, fmt.Appendf(nil, " members=%d", n)) {
			r.Errorf("data %q", node.Data)
		}
	}
	if seen != n {
		r.Errorf("%d members of %d", seen, n)
	}
}

// More members than needed enter and leave (testOverSubscribed). One that comes
// while the round is open passes at once, as in Curator.
func TestOverSubscribed(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		b := r.double(c, 3)
		var all []<-chan entered
		for range 4 {
			all = append(all, r.enter(r.Ctx, b))
		}
		ms := r.inside(all...)
		ms = append(ms, r.inside(r.enter(r.Ctx, b))...)
		var left []<-chan error
		for i, m := range ms {
			if i == 4 {
				waiting(r, left[0])
			}
			left = append(left, r.leave(r.Ctx, m))
		}
		r.gone(left...)
		r.clean()
	})
}

// Wake-ups without a cause let no member pass: a lost connection, a session
// event, a foreign child, another member that comes and goes (testSpuriousWakeup,
// GH-1290).
func TestSpuriousWakeUps(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.double(r.Connect("a"), 2), r.double(r.Connect("b"), 2)
		first := r.enter(r.Ctx, a)
		for range 5 {
			r.standing(1)
			r.Srv.Client("a").Cut()
			r.Check(r.Srv.Create(path+"/note", nil))
			waiting(r, first)
			r.Check(r.Srv.Delete(path + "/note"))
		}
		ms := r.inside(first, r.enter(r.Ctx, b))
		// Nor does a member leave while the other is inside.
		left := r.leave(r.Ctx, ms[0])
		for range 5 {
			r.Srv.Client("a").Cut()
			waiting(r, left)
		}
		r.gone(left, r.leave(r.Ctx, ms[1]))
		r.clean()
	})
}

// A member of a lost session makes its node again, and is never counted twice.
func TestEnterOverSessions(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.Connect("a"), r.Connect("b")
		first := r.enter(r.Ctx, r.double(a, 2))
		name := r.standing(1)[0]
		for range 3 {
			// The server still knows the old session while the client is in the next.
			r.Srv.Client("a").PartitionReplies()
			s, err := a.Session(r.Ctx)
			r.Check(err)
			<-s.Context().Done()
			r.Srv.Client("a").Heal()
			waiting(r, first)
			if now := r.standing(1); now[0] != name {
				r.Errorf("%s became %s", name, now[0])
			}
		}
		ms := r.inside(first, r.enter(r.Ctx, r.double(b, 2)))
		r.gone(r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1]))
		r.clean()
	})
}

// Any answer on the way is lost, or the request, or the session: both enter and leave,
// and one alone never does.
func TestAnswerLostAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]barrier.Option{nil, {barrier.WithRounds()}} {
		bubble(t, func(r *rig) {
			c, d := r.Connect("a"), r.Connect("b")
			expire := func(when func(zktest.Match, func(context.Context, zktest.Request)) *zktest.Rule) func(zktest.Match) *zktest.Rule {
				return func(m zktest.Match) *zktest.Rule {
					return when(m, func(_ context.Context, q zktest.Request) { r.Srv.ExpireSession(q.Session) })
				}
			}
			fired := 0
			for what, fault := range map[string]func(zktest.Match) *zktest.Rule{
				"reply": r.Srv.LoseReply, "request": r.Srv.DropBefore,
				"expire before": expire(r.Srv.BeforeApply), "expire after": expire(r.Srv.BeforeReply),
			} {
				for step := 1; step <= 12; step++ {
					rule := fault(zktest.Match{Client: "a", Nth: step, PathPrefix: "/job"})
					one := r.enter(r.Ctx, r.double(c, 2, opts...))
					waiting(r, one)
					r.standing(1)
					other := r.enter(r.Ctx, r.double(d, 2, opts...))
					ms := r.inside(one, other)
					left, last := r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1])
					err := <-left
					if err != nil && (!strings.HasPrefix(what, "expire") || !errors.Is(err, client.ErrSessionLost)) {
						r.Errorf("%s %d: leave: %v", what, step, err)
					}
					r.gone(last)
					fired += rule.Fired()
					rule.Remove()
					r.clean()
				}
			}
			if fired < 24 {
				r.Errorf("%d faults only", fired)
			}
		})
	}
}

// The end of a context removes the node, and the others wait on (CURATOR-318,
// CURATOR-80).
func TestGiveUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		a, b := r.double(r.Connect("a"), 3), r.double(r.Connect("b"), 3)
		_, err := a.Enter(r.Within(time.Second))
		testrig.WantErr(t, err, context.DeadlineExceeded)
		w := (*barrier.WaitError)(nil)
		if !errors.As(err, &w) || w.Stood != 1 || w.Members != 3 || !strings.Contains(err.Error(), "1 of 3 members") {
			r.Errorf("%+v, %v", w, err)
		}
		r.clean()
		_, err = a.Enter(cancelled(r.Ctx))
		if !errors.As(err, &w) || w.Stood != -1 || strings.Contains(err.Error(), "0 of") {
			r.Errorf("it has not looked, and says how many stood: %+v, %v", w, err)
		}
		first := r.enter(r.Within(3*time.Second), a)
		r.standing(1)
		_, err = b.Enter(r.Within(time.Second))
		if !errors.As(err, &w) || w.Stood != 2 {
			r.Errorf("the one that came last: %+v, %v", w, err)
		}
		if err = (<-first).err; !errors.As(err, &w) || w.Stood != 1 || !strings.Contains(err.Error(), "when this one came") {
			r.Errorf("the one that came first: %+v, %v", w, err)
		}
		r.clean()
		two := []<-chan entered{r.enter(r.Ctx, b), r.enter(r.Ctx, b)}
		r.standing(2)
		_, err = a.Enter(cancelled(r.Ctx))
		testrig.WantErr(t, err, context.Canceled)
		waiting(r, two[0])
		ms := r.inside(append(two, r.enter(r.Ctx, a))...)

		// So does the end of a Leave, whether the lowest gives up or another.
		slices.SortFunc(ms, func(x, y *barrier.Member) int { return strings.Compare(x.Path(), y.Path()) })
		for _, i := range []int{0, 2} {
			err := ms[i].Leave(r.Within(time.Second))
			testrig.WantErr(t, err, context.DeadlineExceeded)
			if !errors.As(err, &w) || !w.Leaving || w.Stood == 0 {
				r.Errorf("%+v", w)
			}
		}
		r.gone(r.leave(r.Ctx, ms[1]))
		r.clean()
	})
}

func cancelled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// A member whose create is lost and whose context ends is not counted with the next
// Enter of the same process.
func TestGiveUpAtEveryMoment(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		b := r.double(c, 2)
		for step := range 60 {
			rule := r.Srv.LoseReply(zktest.Match{Client: "a", Op: zktest.OpCreate, PathPrefix: path})
			_, err := b.Enter(r.Within(time.Duration(step) * 150 * time.Microsecond))
			testrig.WantErr(t, err, context.DeadlineExceeded)
			rule.Remove()
			_, err = b.Enter(r.Within(3 * time.Second))
			testrig.WantErr(t, err, context.DeadlineExceeded)
			r.clean()
		}
	})
}

// A ready node that a crash has left lets no member pass.
func TestStaleReady(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]barrier.Option{nil, {barrier.WithRounds()}} {
		bubble(t, func(r *rig) {
			c, d := r.Connect("a"), r.Connect("b")
			r.inside(r.enter(r.Ctx, r.double(c, 2, opts...)), r.enter(r.Ctx, r.double(d, 2, opts...)))
			r.Srv.Client("a").ExpireSession()
			r.Srv.Client("b").ExpireSession()
			time.Sleep(testrig.SessionTimeout)
			if now := r.Srv.Children(path); len(now) != 1 {
				r.Fatalf("%v", now)
			}
			one := r.enter(r.Ctx, r.double(c, 2, opts...))
			waiting(r, one)
			ms := r.inside(one, r.enter(r.Ctx, r.double(d, 2, opts...)))
			r.gone(r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1]))
			r.clean()
		})
	}
}

// A ready node that another member makes while a stale one is removed stays, although it
// has the version of the stale one.
func TestStaleReadyReplaced(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		r.Check(r.Srv.Create("/job", nil))
		r.Check(r.Srv.Create(path, nil))
		r.Check(r.Srv.Create(ready, nil))
		rule := r.Srv.BeforeApply(zktest.Match{Client: "a", Path: ready, Op: zktest.OpMulti}, func(context.Context, zktest.Request) {
			r.Check(r.Srv.Delete(ready))
			r.Check(r.Srv.Create(ready, nil))
		})
		r.inside(r.enter(r.Ctx, r.double(c, 2)))
		if _, there := r.Srv.Node(ready); !there {
			r.Error("the new ready node is gone")
		}
		if rule.Fired() != 1 {
			r.Error("nothing was tested")
		}
	})
}

// A member that dies inside is left behind by the others, and hears of it first. If it
// was the lowest, the others remove the ready node.
func TestMemberDies(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		for _, lowest := range []bool{true, false} {
			cs := map[string]*client.Client{"a": r.Connect("a"), "b": r.Connect("b"), "c": r.Connect("c")}
			owner := map[*barrier.Member]string{}
			var all []<-chan entered
			names := []string{"a", "b", "c"}
			for _, name := range names {
				all = append(all, r.enter(r.Ctx, r.double(cs[name], 3)))
			}
			ms := r.inside(all...)
			for i, m := range ms {
				owner[m] = names[i]
			}
			slices.SortFunc(ms, func(x, y *barrier.Member) int { return strings.Compare(x.Path(), y.Path()) })
			if !lowest {
				slices.Reverse(ms)
			}
			dies := ms[0]
			var told, seen time.Time
			r.Srv.OnCommit(func(c zktest.Commit) {
				if slices.Contains(c.Deleted, dies.Path()) {
					seen = c.Time
				}
			})
			left := []<-chan error{r.leave(r.Ctx, ms[1]), r.leave(r.Ctx, ms[2])}
			waiting(r, left[0])
			waiting(r, left[1])
			r.Srv.Client(owner[dies]).Partition()
			r.ended(dies)
			told = time.Now()
			r.gone(left...)
			if !told.Before(seen) {
				r.Errorf("told at %v, others saw it at %v", told, seen)
			}
			testrig.WantErr(t, context.Cause(dies.Context()), client.ErrLeaseExpired)
			testrig.WantErr(t, dies.Leave(r.Ctx), client.ErrLeaseExpired)
			r.Srv.Client(owner[dies]).Heal()
			time.Sleep(3 * testrig.SessionTimeout)
			r.clean()
		}
	})
}

// An operator deletes nodes.
func TestOperatorDeletes(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, d := r.Connect("a"), r.Connect("b")
		// The node of a member that waits: it is told.
		one := r.enter(r.Ctx, r.double(c, 2))
		r.Check(r.Srv.Delete(path + "/" + r.standing(1)[0]))
		testrig.WantErr(t, (<-one).err, barrier.ErrNodeDeleted)
		// With the directory as well: the next makes it again.
		one = r.enter(r.Ctx, r.double(c, 2))
		r.Check(r.Srv.Delete(path + "/" + r.standing(1)[0]))
		r.Check(r.Srv.Delete(path))
		testrig.WantErr(t, (<-one).err, barrier.ErrNodeDeleted)
		ms := r.inside(r.enter(r.Ctx, r.double(c, 2)), r.enter(r.Ctx, r.double(d, 2)))
		// The ready node while members are inside: they leave as ever.
		r.Check(r.Srv.Delete(ready))
		r.gone(r.leave(r.Ctx, ms[0]), r.leave(r.Ctx, ms[1]))
		r.clean()
		// The node of a member inside: its context ends, the other leaves.
		ms = r.inside(r.enter(r.Ctx, r.double(c, 2)), r.enter(r.Ctx, r.double(d, 2)))
		r.Check(r.Srv.Delete(ms[0].Path()))
		r.ended(ms[0])
		testrig.WantErr(t, ms[0].Err(), barrier.ErrNodeDeleted)
		testrig.WantErr(t, ms[0].Leave(r.Ctx), barrier.ErrNodeDeleted)
		r.gone(r.leave(r.Ctx, ms[1]))
		r.clean()
		// The ready node before a member has seen it: it has seen that it was made.
		one = r.enter(r.Ctx, r.double(c, 2))
		r.standing(1)
		rule := r.Srv.BeforeApply(zktest.Match{Client: "a", Op: zktest.OpGetData, Path: ready}, func(context.Context, zktest.Request) {
			r.Check(r.Srv.Delete(ready))
		})
		two := r.enter(r.Ctx, r.double(d, 2))
		ms = r.inside(two)
		other := r.leave(r.Ctx, ms[0])
		ms = r.inside(one)
		if rule.Fired() != 1 {
			r.Error("nothing was tested")
		}
		r.gone(other, r.leave(r.Ctx, ms[0]))
		r.clean()
	})
}

// A missing right is the error of the call, and leaves no node.
func TestNoRight(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c, d := r.Connect("a"), r.Connect("b")
		for _, op := range []zktest.Op{zktest.OpCreate, zktest.OpGetChildren2} {
			rule := r.Srv.Fail(zktest.Match{Client: "a", Op: op, PathPrefix: path, Times: zktest.Always}, zktest.CodeNoAuth)
			_, err := r.double(c, 1).Enter(r.Ctx)
			testrig.WantErr(t, err, client.ErrNoAuth)
			if rule.Fired() == 0 {
				r.Errorf("%v: nothing was tested", op)
			}
			rule.Remove()
			r.clean()
		}
		// No right to make the ready node.
		rule := r.Srv.Fail(zktest.Match{Client: "a", Op: zktest.OpMulti, PathPrefix: path}, zktest.CodeNoAuth)
		_, err := r.double(c, 1).Enter(r.Ctx)
		testrig.WantErr(t, err, client.ErrNoAuth)
		if rule.Fired() != 1 {
			r.Error("nothing was tested")
		}
		r.clean()
		// No right to read: existence is no secret.
		r.Srv.Fail(zktest.Match{Op: zktest.OpGetData, PathPrefix: path, Times: zktest.Always}, zktest.CodeNoAuth)
		one := r.enter(r.Ctx, r.double(c, 2))
		waiting(r, one)
		ms := r.inside(one, r.enter(r.Ctx, r.double(d, 2)))
		v, err := r.double(c, 2).View(r.Ctx)
		r.Check(err)
		if len(v.Members) != 2 || v.Members[0].Count != 0 || !v.Open {
			r.Errorf("%+v", v)
		}
		left := r.leave(r.Ctx, ms[0])
		waiting(r, left)
		r.gone(left, r.leave(r.Ctx, ms[1]))
		r.clean()
	})
}
