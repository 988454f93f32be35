package zkserver_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// TestRejoinGetsWhatIsInTheLog lets a follower come back while the leader has
// writes that are not committed.
func TestRejoinGetsWhatIsInTheLog(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a := on(t, e, "a", 2)
		e.Leader().HoldLog()
		if _, err := a.send(1, create("/held")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		e.Server(1).Stop()
		e.Server(1).Resume()
		time.Sleep(time.Second)
		if _, ok := e.Server(1).Node("/held"); ok || !e.Server(1).Serving() {
			t.Error("the follower is not back, or has applied what is not committed")
		}
		e.Leader().ReleaseLog()
		if got, err := a.receive(); err != nil || got.err != 0 {
			t.Errorf("answer %+v, %v", got, err)
		}
		sameState(t, e)
	})
}

// TestDeposedLeaderKeepsItsLog lets the only member that has logged a write
// take part in the next election: the write happens after all. The session it
// was opening at the end does not exist before.
func TestDeposedLeaderKeepsItsLog(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		a := on(t, e, "a", 3)
		e.Isolate(3)
		if _, err := a.send(1, create("/maybe")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		newcomer := memoryConn(t, e.Client("n").To(3))
		if err := newcomer.writeFrame(body(int32(0), int64(0), int32(9000), int64(0), nil16())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		for i := 1; i <= e.Size(); i++ {
			e.Server(i).Stop()
		}
		if n := len(e.Server(3).Sessions()); n != 1 {
			t.Errorf("%d sessions on the deposed leader, want only the one that was committed", n)
		}
		e.Heal()
		e.Server(1).Resume()
		e.Server(3).Resume()
		if l, err := e.AwaitLeader(t.Context()); err != nil || l.ID() != 3 {
			t.Fatalf("leader %v, %v", l, err)
		}
		for _, i := range []int{1, 3} {
			if _, ok := e.Server(i).Node("/maybe"); !ok || len(e.Server(i).Sessions()) != 2 {
				t.Errorf("member %d:\n%s", i, e.Server(i).Dump())
			}
		}
	})
}

// TestMembersDrawApart checks that two members do not draw the same latencies
// for one client.
func TestMembersDrawApart(t *testing.T) {
	t.Parallel()
	ensemble(t, func(t *testing.T, e *zktest.Ensemble) {
		var took []time.Duration
		for _, i := range []int{1, 2} {
			c := on(t, e, "a", i)
			start := time.Now()
			must(t, c, 3, exists("/"), 0)
			took = append(took, time.Since(start))
		}
		if took[0] == took[1] {
			t.Errorf("a round trip to either member takes %v", took[0])
		}
	})
}
