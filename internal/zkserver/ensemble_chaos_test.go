package zkserver_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/zktest"
)

// upset breaks the ensemble, one fault at a time, and mends it.
func upset(e *zktest.Ensemble, r *rand.Rand) {
	for range 10 {
		time.Sleep(time.Duration(r.Int64N(int64(6 * time.Second))))
		m := e.Server(1 + r.IntN(e.Size()))
		switch r.IntN(9) {
		case 0:
			e.Isolate(m.ID())
		case 1:
			e.Cut(1, 3)
		case 2:
			m.Stop()
		case 3:
			m.Crash(r.IntN(4))
		case 4:
			m.Lag(time.Duration(r.Int64N(int64(2 * time.Second))))
		case 5:
			m.HoldCommits()
		case 6:
			_ = e.ChangeLeader(m.ID()) // it may not be able to lead
		case 7:
			e.CutOneWay(m.ID(), 1+m.ID()%e.Size())
		case 8:
			m.Halt()
		}
		time.Sleep(time.Duration(r.Int64N(int64(9 * time.Second))))
		e.Heal()
		m.Continue()
		m.Resume()
		m.Lag(0)
		m.ReleaseCommits()
	}
}

// ensembleChaos returns all that the members saw and the epoch in which it
// ended.
func ensembleChaos(t *testing.T, seed uint64) (tr *trace, epoch int64) {
	t.Helper()
	const clients = 3
	tr = &trace{}
	synctest.Test(t, func(t *testing.T) {
		e := zktest.NewEnsemble(t, 3, zktest.WithSeed(seed), zktest.WithTick(time.Second),
			zktest.WithLatency(20*time.Microsecond, 2*time.Millisecond))
		e.OnRequest(tr.observe)
		if err := e.Leader().Create("/d", nil); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				time.Sleep(time.Duration(r.Int64N(int64(time.Millisecond))))
				wander(connectTo(t, e.Client(fmt.Sprint("c", i)), 8*time.Second), r)
			})
		}
		wg.Go(func() { upset(e, rand.New(rand.NewPCG(seed, clients))) })
		wg.Wait()
		l, err := e.AwaitLeader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*time.Second + time.Millisecond)
		sameState(t, e)
		epoch = l.Zxid() >> 32
	})
	return tr, epoch
}

// sameState checks that all members have come to the same tree and sessions.
func sameState(t *testing.T, e *zktest.Ensemble) {
	t.Helper()
	describe := func(m *zktest.Member) string {
		text := fmt.Sprintf("%#x ", m.Zxid())
		for _, n := range m.Tree() {
			text += fmt.Sprintf("%+v ", n)
		}
		for _, s := range m.Sessions() {
			text += fmt.Sprintf("%#x %v %v ", s.ID, s.Timeout, s.Ephemerals)
		}
		return text
	}
	want := describe(e.Leader())
	for i := 1; i <= e.Size(); i++ {
		if got := describe(e.Server(i)); got != want {
			t.Errorf("member %d has\n%s\nthe leader\n%s", i, got, want)
		}
	}
}

// TestEnsembleSameSeedSameTrace repeats runs through every fault an ensemble
// knows, and checks that the members agree when it is over.
func TestEnsembleSameSeedSameTrace(t *testing.T) {
	t.Parallel()
	elections := int64(0)
	seeds := sameSeedSameTrace(t, func(t *testing.T, seed uint64) *trace {
		t.Helper()
		tr, epoch := ensembleChaos(t, seed)
		elections += epoch - 1
		return tr
	})
	if elections < int64(seeds*runsPerSeed) {
		t.Errorf("%d elections in %d seeds: too tame", elections, seeds)
	}
}
