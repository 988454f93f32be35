package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
	sim "github.com/docent-go/docent/recipes/internal/simulation"
	"github.com/docent-go/docent/zktest"
)

const (
	crowdSeedsEnv  = "DOCENT_SIM_CROWD_SEEDS" // how many schedules each crowd of TestCrowdSchedules plays
	everySituation = 150                      // so many schedules come to every situation
)

// A crowd is one client whose many actors stand in one line. So they hand over to each other
// in the process. What happens to them is what programs and operators do.
var (
	readersCrowd = crowd("TestReadersCrowdSeed", readWrite)
	mutexCrowd   = crowd("TestMutexCrowdSeed", mutexes)
	permitsCrowd = crowd("TestPermitsCrowdSeed", semaphores)
)

func crowd(test string, k *kind) setting {
	c := alone.of(test, []game{{kinds: []*kind{k}, requests: requestsOfMany}})
	c.clients, c.actors, c.locks, c.counts = 1, len(lags), 1, false
	c.start = func(t *testing.T, opts ...zktest.Option) cluster {
		t.Helper()
		all := startAlone(t, opts...)
		all.menu = crowdMenu
		return all
	}
	return c
}

// crowdMenu is what operators do, mostly.
var crowdMenu = []fault{
	{"delete", deleteContender},
	{"delete", deleteContender},
	{"delete", deleteContender},
	{"delete", deleteContender},
	{"ask", askContender},
	{"ask", askContender},
	{"ask", askContender},
	{"ask", askContender},
	{"expire", expire},
	{"close", closeClient},
}

// askContender is an operator that asks a contender to release.
func askContender(p *plan, w *world, n *node, at, _ time.Duration) {
	l := w.locks[p.r.IntN(len(w.locks))]
	place := p.r.IntN(4)
	p.add(at, fmt.Sprintf("ask contender %d of %s", place, l.path), func() {
		line := w.h.Standing(l.path)
		c := n.c.Load()
		if len(line) == 0 || c == nil || n.closed.Load() {
			return
		}
		go func() { // ends with the schedule
			path := line[place%len(line)]
			at := w.now()
			if err := l.request(w.ctx, c, recipes.Contender{Path: path}); err == nil {
				w.h.Note(func() { w.asked = append(w.asked, sim.Force{Path: path, At: at}) })
			}
		}()
	})
}

// request asks a contender of the lock to release.
func (l *resource) request(ctx context.Context, c *client.Client, of recipes.Contender) error {
	switch l.kind {
	case readWrite:
		rw, err := recipes.NewInterProcessReadWriteLock(c, l.path)
		return errors.Join(err, rw.RequestRelease(ctx, of))
	case semaphores:
		s, err := recipes.NewInterProcessSemaphoreV2(c, l.path, l.of)
		return errors.Join(err, s.RequestRelease(ctx, of))
	default:
		m, err := recipes.NewInterProcessMutex(c, l.path)
		return errors.Join(err, m.RequestRelease(ctx, of))
	}
}

// TestCrowdSchedules plays many seeds of each crowd. Each situation that is possible must have
// come up; the few schedules under the race detector do not reach all.
func TestCrowdSchedules(t *testing.T) {
	t.Parallel()
	for _, k := range []setting{readersCrowd, mutexCrowd, permitsCrowd} {
		t.Run(k.test, func(t *testing.T) {
			t.Parallel()
			count := number(t, crowdSeedsEnv, crowdSchedules)
			if sum := playMany(t, k, count); !t.Failed() && count >= everySituation {
				sum.situations.wantAll(t, k.games[0].kinds[0])
			}
		})
	}
}

// TestReadersCrowdSeed plays one schedule and prints what happened in it.
func TestReadersCrowdSeed(t *testing.T) {
	t.Parallel()
	playOne(t, readersCrowd)
}

// TestMutexCrowdSeed does so for a mutex.
func TestMutexCrowdSeed(t *testing.T) {
	t.Parallel()
	playOne(t, mutexCrowd)
}

// TestPermitsCrowdSeed does so for permits.
func TestPermitsCrowdSeed(t *testing.T) {
	t.Parallel()
	playOne(t, permitsCrowd)
}
