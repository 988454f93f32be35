package simulation_test

import (
	"slices"
	"testing"
)

const (
	crowdSeedsEnv  = "DOCENT_SIM_CROWD_SEEDS" // how many schedules each crowd of TestCrowdSchedules plays
	everySituation = 500                      // so many schedules come to every situation, and make every call
)

// A crowd plays the whole vocabulary on one kind of lock, or on several kinds that meet. It is
// up to twelve actors of up to three clients, on up to three paths. In half of the schedules
// they are of one or two clients and stand in one line. So they hand over to each other in the
// process, and what happens to them is what programs and operators do. In the others all faults
// come.
var (
	mutexCrowd    = crowd("TestMutexCrowdSeed", mutexes)
	readersCrowd  = crowd("TestReadersCrowdSeed", readWrite)
	permitsCrowd  = crowd("TestPermitsCrowdSeed", semaphores)
	aloneCrowd    = crowd("TestAloneCrowdSeed", permitAlone)
	latchCrowd    = crowd("TestLatchCrowdSeed", latches)
	selectorCrowd = crowd("TestSelectorCrowdSeed", mutexSelector)
	strangeCrowd  = crowd("TestStrangeCrowdSeed", strangers)
	severalCrowd  = crowdOf("TestSeveralCrowdSeed", []game{
		{kinds: []*kind{mutexes, readWrite, semaphores}, together: true, requests: requestsOfMany},
		{kinds: []*kind{mutexSelector, permitAlone}, together: true, requests: requestsOfMany},
	})
)

var crowds = []setting{mutexCrowd, readersCrowd, permitsCrowd, aloneCrowd, latchCrowd, selectorCrowd, strangeCrowd, severalCrowd}

func crowd(test string, k *kind) setting {
	return crowdOf(test, []game{{kinds: []*kind{k}, requests: requestsOfMany}})
}

func crowdOf(test string, games []game) setting {
	c := alone.of(test, games)
	c.whole = true
	return c
}

// mostActors is how many actors there are at most, and in most crowds of one client.
const mostActors = len(lags)

// drawWhole draws the size of a crowd, and returns how many paths there are.
func (w *world) drawWhole() (paths int) {
	r := generator(w.seed, "crowd")
	w.noReentry = r.IntN(8) == 0
	w.named = generator(w.seed, "namespaces").IntN(4) == 0
	w.clients, w.actors, paths = 1, mostActors, 1
	if r.IntN(2) == 0 {
		w.clients, paths = 1+r.IntN(3), 1+r.IntN(3)
		w.actors = 1 + r.IntN(mostActors/w.clients)
		w.menu = slices.Concat(w.menu, operatorsMenu)
		return paths
	}
	if r.IntN(3) > 0 {
		w.clients, w.actors = 2, mostActors/2
	}
	w.menu, w.style = operatorsMenu, operated
	w.late = generator(w.seed, "late").IntN(2) == 0
	return paths
}

// TestCrowdSchedules plays many seeds of each crowd. With everySituation of them each situation
// that is possible must have come up, and all crowds together have made every exported call.
func TestCrowdSchedules(t *testing.T) {
	t.Parallel()
	count := number(t, crowdSeedsEnv, crowdSchedules)
	said := &words{n: ledger{}, crowds: map[string]bool{}}
	t.Cleanup(func() { // after all of them
		if !t.Failed() && count >= everySituation && len(said.crowds) == len(crowds) {
			said.wantAllSpoken(t)
		}
	})
	for _, k := range crowds {
		t.Run(k.test, func(t *testing.T) {
			t.Parallel()
			sum := playMany(t, k, count)
			said.addAll(k.test, sum.words)
			if t.Failed() {
				return
			}
			if count >= 30 {
				sum.wantCrowd(t, k, int(count))
			}
			if count >= everySituation {
				sum.situations.wantAll(t, k)
			}
		})
	}
}

// wantCrowd asks for what makes a crowd of its own worth while.
func (t *totals) wantCrowd(tb testing.TB, k setting, schedules int) {
	tb.Helper()
	per := atLeast(tb, schedules)
	per("grants", t.Grants, 25)
	per("waits for others", t.Waits, 8)
	per("busy locks", t.Busy, 4)
	per("failed attempts", t.Failed, 8)
	per("lost sessions", t.SessionsLost, 0.5)
	per("partitions that were noticed", t.PartitionsHit, 0.1)
	per("acts of force", t.Forced, 3)
	per("lost holds", t.HoldsLost, 0.5)
	per("clients closed at work", t.Closed, 0.02)
	switch k.test {
	case strangeCrowd.test:
		per("refusals of another recipe on the path", t.Strange, 10)
	case severalCrowd.test:
		per("grants of several locks", t.Several, 20)
		per("permits that were granted to several together", t.Together, 0.1)
	case permitsCrowd.test:
		per("refusals for the number of permits", t.Few, 0.5)
		per("permits that were withdrawn", t.Withdrawn, 2)
		per("permits that were granted at once", t.AtOnce, 2)
		per("permits that a release handed over", t.Handed, 2)
		per("permits that were granted to several together", t.Together, 0.5)
	case latchCrowd.test:
		per("participants that were moved behind", t.Moved, 0.5)
		per("terms that were drained", t.Drained, 2)
		per("leaderships that were observed", t.Sights, 80)
		per("observers in doubt", t.Doubts, 2)
	case readersCrowd.test:
		per("grants beside others", t.Beside, 10)
		per("re-entries that were refused", t.Hopeless, 2)
	}
}

// Each of these plays one schedule and prints what happened in it.

func TestMutexCrowdSeed(t *testing.T)    { t.Parallel(); playOne(t, mutexCrowd) }
func TestReadersCrowdSeed(t *testing.T)  { t.Parallel(); playOne(t, readersCrowd) }
func TestPermitsCrowdSeed(t *testing.T)  { t.Parallel(); playOne(t, permitsCrowd) }
func TestAloneCrowdSeed(t *testing.T)    { t.Parallel(); playOne(t, aloneCrowd) }
func TestLatchCrowdSeed(t *testing.T)    { t.Parallel(); playOne(t, latchCrowd) }
func TestSelectorCrowdSeed(t *testing.T) { t.Parallel(); playOne(t, selectorCrowd) }
func TestStrangeCrowdSeed(t *testing.T)  { t.Parallel(); playOne(t, strangeCrowd) }
func TestSeveralCrowdSeed(t *testing.T)  { t.Parallel(); playOne(t, severalCrowd) }
