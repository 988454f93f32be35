package recipes_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// A term is handed over to a named participant. The participants in between go
// behind all others, and lead in their turn. Every term has a greater token.
func TestHandOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var all []*recipes.Election
		for i := range 5 {
			all = append(all, r.latch(r.Connect(name(i)), name(i)))
		}
		term := r.leads(all[0])
		var waits []<-chan campaigned
		for i, e := range all[1:] {
			waits = append(waits, r.campaign(r.Ctx, e, i+2))
		}
		for id, says := range map[string]string{"nobody": `"nobody"; Participants`, "c0": `"c0" is the leader itself`} {
			err := term.HandOver(r.Ctx, id)
			testrig.WantErr(t, err, recipes.ErrNoParticipant)
			if !strings.Contains(err.Error(), says) {
				r.Errorf("error %q does not say %q", err, says)
			}
		}
		r.Check(term.Err())
		r.Check(term.HandOver(r.Ctx, "c3"))
		testrig.WantErr(t, term.Err(), recipes.ErrReleased)
		token := term.FencingToken()
		for i, want := range []int{2, 3} { // c3, and c4 that stood behind it
			next := <-waits[want]
			if r.Check(next.err); next.term.FencingToken() <= token {
				r.Errorf("turn %d: token %d after %d", i, next.term.FencingToken(), token)
			}
			token = next.term.FencingToken()
			r.inElection(4 - i)
			if i == 0 {
				if ids := r.ids(all[0]); ids[0] != "c3" || ids[1] != "c4" || !slices.Contains(ids, "c1") || !slices.Contains(ids, "c2") {
					r.Errorf("in line: %v", ids)
				}
			}
			r.Check(next.term.Close())
		}
		for range 2 {
			var next campaigned
			select {
			case next = <-waits[0]:
			case next = <-waits[1]:
			}
			if r.Check(next.err); next.term.FencingToken() <= token {
				r.Error("a token that does not grow")
			}
			token = next.term.FencingToken()
			r.Check(next.term.Close())
		}
		r.inElection(0)
		testrig.WantNoGoroutine(t, ourFrames)
	})
}

// A participant of another library is not moved: the term goes on. The direct successor
// may be of any library.
func TestHandOverPassesNoStranger(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		one, two := r.latch(r.Connect("a"), "one"), r.latch(r.Connect("b"), "two")
		term := r.leads(one)
		java := leaders + "/_c_0c708091-6d54-4320-8594-f6fdb71d5f95-latch-0000000001"
		made, err := r.Connect("java").Create(r.Ctx, leaders+"/_c_0c708091-6d54-4320-8594-f6fdb71d5f95-latch-",
			[]byte("java"), client.Ephemeral(), client.Sequential())
		if r.Check(err); made != java {
			r.Fatalf("made %s", made)
		}
		waits := r.campaign(r.Ctx, two, 3)
		testrig.WantErr(t, term.HandOver(r.Ctx, "two"), recipes.ErrNotMovable)
		r.Check(term.Err())
		r.Check(term.HandOver(r.Ctx, "java"))
		if ids := r.ids(one); !slices.Equal(ids, []string{"java", "two"}) {
			r.Errorf("in line: %v", ids)
		}
		r.Check(r.Srv.Delete(java))
		next := <-waits
		r.Check(next.err)
		r.Check(next.term.Close())
	})
}

// The answers of a hand-over are lost: it succeeds, and moves no participant
// twice.
func TestHandOverLostAnswers(t *testing.T) {
	t.Parallel()
	for _, op := range []zktest.Op{zktest.OpMulti, zktest.OpDelete} {
		bubble(t, func(r *rig) {
			one := r.latch(r.Connect("a"), "one")
			term := r.leads(one)
			second := r.campaign(r.Ctx, r.latch(r.Connect("b"), "two"), 2)
			third := r.campaign(r.Ctx, r.latch(r.Connect("c"), "three"), 3)
			lost := r.Srv.LoseReply(zktest.Match{Client: "a", Op: op, PathPrefix: leaders + "/"})
			r.Check(term.HandOver(r.Ctx, "three"))
			if lost.Fired() == 0 {
				r.Error("nothing was lost")
			}
			for _, wait := range []<-chan campaigned{third, second} {
				next := <-wait
				r.Check(next.err)
				r.Check(next.term.Close())
			}
			r.inElection(0)
		})
	}
}

// The context ends during the release of a hand-over: the error is that of the context,
// and the term is over, as after any release.
func TestHandOverContextEnds(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		term := r.leads(r.latch(r.Connect("a"), "one"))
		second := r.campaign(r.Ctx, r.latch(r.Connect("b"), "two"), 2)
		node := zktest.Match{Client: "a", PathPrefix: leaders + "/"}
		node.Op = zktest.OpGetData
		r.Srv.DelayReply(node, 2*time.Second)
		testrig.WantErr(t, term.HandOver(r.Within(time.Second), "two"), context.DeadlineExceeded)
		r.Check(term.Err())
		time.Sleep(2 * time.Second)
		node.Op = zktest.OpDelete
		r.Srv.StallReply(node)
		testrig.WantErr(t, term.HandOver(r.Within(time.Second), "two"), context.DeadlineExceeded)
		testrig.WantErr(t, term.Err(), recipes.ErrReleased)
		next := <-second
		r.Check(next.err)
		r.Check(next.term.Close())
	})
}

// A term that is over is not handed over, and moves no participant.
func TestHandOverAfterTheTerm(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		one := r.latch(c, "one")
		term := r.leads(one)
		second := r.campaign(r.Ctx, r.latch(r.Connect("b"), "two"), 2)
		third := r.campaign(r.Ctx, r.latch(r.Connect("c"), "three"), 3)
		r.Srv.ExpireSession(r.SessionID(c))
		next := <-second
		r.Check(next.err)
		testrig.WantErr(t, term.HandOver(r.Ctx, "three"), recipes.ErrLost)
		testrig.WantErr(t, term.Close(), recipes.ErrLost)
		r.Check(next.term.Err())
		testrig.WantErr(t, term.AwaitSuccessor(r.Ctx), recipes.ErrLost)
		r.Check(next.term.Close())
		last := <-third
		r.Check(last.err)
		r.Check(last.term.Close())
		testrig.WantErr(t, last.term.HandOver(r.Ctx, "two"), recipes.ErrReleased)
	})
}

// A leader that is to be stopped leads until a participant of another session stands in
// line, and until it gives the term up.
func TestAwaitSuccessor(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		one := r.latch(c, "one")
		term := r.leads(one)
		testrig.WantErr(t, term.AwaitSuccessor(r.Within(time.Second)), context.DeadlineExceeded)
		r.Check(term.Err())
		same := r.campaign(r.Ctx, r.latch(c, "same"), 2)
		done := make(chan error, 1)
		go func() { done <- term.AwaitSuccessor(r.Ctx) }()
		time.Sleep(time.Second)
		r.Check(term.Err()) // one of its own process is no successor
		other := r.campaign(r.Ctx, r.latch(r.Connect("b"), "other"), 3)
		r.Check(<-done)
		r.Check(term.Err())
		r.Check(term.Close())
		testrig.WantErr(t, term.AwaitSuccessor(r.Ctx), recipes.ErrReleased)
		for _, wait := range []<-chan campaigned{same, other} {
			next := <-wait
			r.Check(next.err)
			r.Check(next.term.Close())
		}
		r.inElection(0)
		if n := r.Srv.WatchCount(); n != 0 {
			time.Sleep(2 * time.Second)
			if n = r.Srv.WatchCount(); n != 0 {
				r.Errorf("%d watches left", n)
			}
		}
	})
}

// A participant gives way to a preferred one that stands in line. It leads if the
// preferred one leaves (in Kubernetes there is no leader then).
func TestPreferred(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		prefer := recipes.WithPreferred("best", "good")
		first := r.leads(r.latch(r.Connect("first"), "first", prefer)) // alone, so it leads
		one := r.campaign(r.Ctx, r.latch(r.Connect("a"), "plain", prefer), 2)
		good := r.campaign(r.Ctx, r.latch(r.Connect("b"), "good", prefer), 3)
		ctx, cancel := context.WithCancel(r.Ctx)
		best := r.campaign(ctx, r.latch(r.Connect("c"), "best", prefer), 4)
		r.Check(first.Release(r.Ctx))
		next := <-best
		r.Check(next.err)
		r.Check(next.term.Close())
		next = <-good
		r.Check(next.err)
		best = r.campaign(ctx, r.latch(r.Connect("d"), "best", prefer), 3)
		cancel() // the preferred one vanishes
		if got := <-best; !errors.Is(got.err, context.Canceled) {
			r.Errorf("%+v", got)
		}
		r.Check(next.term.Close())
		next = <-one
		r.Check(next.err)
		r.Check(next.term.Close())
		r.inElection(0)
	})
}

// Two participants prefer each other, as in a rolling update: one of them leads soon.
func TestPreferredEachOther(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		first := r.leads(r.latch(r.Connect("first"), "first"))
		one := r.campaign(r.Ctx, r.latch(r.Connect("a"), "a", recipes.WithPreferred("b", "a")), 2)
		two := r.campaign(r.Ctx, r.latch(r.Connect("b"), "b", recipes.WithPreferred("a", "b")), 3)
		r.Check(first.Close())
		for range 2 {
			select {
			case got := <-one:
				r.Check(got.err)
				r.Check(got.term.Close())
			case got := <-two:
				r.Check(got.err)
				r.Check(got.term.Close())
			case <-time.After(10 * time.Second):
				r.Fatal("no participant leads")
			}
		}
		r.inElection(0)
	})
}

// The preferred participant cannot be asked for: an election has a leader all the same.
func TestPreferredUnknown(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		e := r.latch(r.Connect("a"), "plain", recipes.WithPreferred("best"))
		first := r.leads(e)
		waits := r.campaign(r.Ctx, r.latch(r.Connect("b"), "other", recipes.WithPreferred("best")), 2)
		r.Srv.Fail(zktest.Match{Client: "b", Op: zktest.OpGetData, Nth: 2}, zktest.CodeNoAuth)
		r.Check(first.Close())
		next := <-waits
		r.Check(next.err)
		r.Check(next.term.Close())
	})
}

// The term is lost between the look at the line and the transaction: no
// participant is moved.
func TestHandOverOfALostTerm(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		c := r.Connect("a")
		one := r.latch(c, "one")
		term := r.leads(one)
		second := r.campaign(r.Ctx, r.latch(r.Connect("b"), "two"), 2)
		third := r.campaign(r.Ctx, r.latch(r.Connect("c"), "three"), 3)
		r.Srv.BeforeReply(zktest.Match{Client: "a", Op: zktest.OpGetData, PathPrefix: leaders + "/", Nth: 3},
			func(context.Context, zktest.Request) {
				if err := r.Srv.Delete(term.Path()); err != nil {
					r.Error(err)
				}
			})
		testrig.WantErr(t, term.HandOver(r.Ctx, "three"), recipes.ErrLost)
		next := <-second
		r.Check(next.err)
		time.Sleep(time.Second)
		r.Check(next.term.Err())
		r.Check(next.term.Close())
		last := <-third
		r.Check(last.err)
		r.Check(last.term.Close())
		testrig.WantErr(t, term.Close(), recipes.ErrLost)
	})
}
