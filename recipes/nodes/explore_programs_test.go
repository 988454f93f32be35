package nodes_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/recipes/nodes"
	"github.com/docent-go/docent/zktest"
)

const (
	exploreLongEnv    = "DOCENT_EXPLORE_LONG"    // 1: longer programs, for minutes
	exploreProgramEnv = "DOCENT_EXPLORE_PROGRAM" // "KIND: CALL, CALL": the only program to play
	programsPerServer = 100
)

// playAll plays programs one after the other on one server, each in a directory of its own. It
// returns how many, and what is wrong with the last.
func playAll(t *testing.T, k *kind, all [][]string) (played int, err error) {
	t.Helper()
	bubble(t, func(r *rig) {
		r.Ctx = context.WithoutCancel(r.Ctx) // hours pass
		var clients []*client.Client
		for i := range k.clients {
			clients = append(clients, r.Connect(fmt.Sprint("c", i)))
		}
		for i, calls := range all {
			played++
			s := r.newStage(k, clients, fmt.Sprint("/short", i))
			for j, call := range calls {
				if bad := s.call(call); bad != nil {
					err = fmt.Errorf("after call %d, %s: %w", j, call, bad)
					break
				}
			}
			if bad := s.end(); bad != nil && err == nil {
				err = fmt.Errorf("at the end: %w", bad)
			}
			if err != nil {
				return
			}
		}
		if left := testrig.Goroutines(r.T, ourFrames); len(left) > 0 {
			err = fmt.Errorf("in this program or one before: %d goroutines are left, one of them:\n%s", len(left), left[0])
		}
	}, zktest.WithSeed(1), zktest.WithLatency(0, 0))
	return played, err
}

// TestEveryShortProgram plays every program of a few calls by one or two objects, in each mode.
// After each call all comes to rest. Then those nodes stand that the rule names, with the
// data that was accepted last; each object tells what is so, and its calls have returned
// that must; an onlooker of a group was told of its members; and at the end nothing is left.
func TestEveryShortProgram(t *testing.T) {
	t.Parallel()
	name, program, replay := strings.Cut(os.Getenv(exploreProgramEnv), ": ")
	for _, k := range kinds() {
		if replay && k.name != name {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			if replay {
				if _, err := playAll(t, &k, [][]string{strings.Split(program, ", ")}); err != nil {
					t.Error(err)
				}
				return
			}
			k.explore(t)
		})
	}
}

// explore plays the programs of a kind on as many threads as there are.
func (k *kind) explore(t *testing.T) {
	t.Helper()
	begun, length := time.Now(), nodes.ShortProgram-k.less
	if os.Getenv(exploreLongEnv) != "" {
		length += 2
	}
	batches := make(chan [][]string)
	var mu sync.Mutex // guards total
	total := 0
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() { // ends when batches is closed
			for batch := range batches {
				if t.Failed() {
					continue
				}
				n, err := playAll(t, k, batch)
				if err != nil {
					t.Errorf("%v\nrepeat: %s='%s: %s' go test -run TestEveryShortProgram ./recipes/nodes",
						err, exploreProgramEnv, k.name, strings.Join(batch[n-1], ", "))
				}
				mu.Lock()
				total += n
				mu.Unlock()
			}
		})
	}
	var batch [][]string
	k.programs(length, func(calls []string) bool {
		if batch = append(batch, calls); len(batch) == programsPerServer {
			batches <- batch
			batch = nil
		}
		return !t.Failed()
	})
	batches <- batch
	close(batches)
	workers.Wait()
	t.Logf("%d programs of %d calls in %v", total, length, time.Since(begun).Round(time.Millisecond))
	if total < 5 {
		t.Error("hardly a program was played")
	}
}
