package zktest_test

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// diffServer names the environment variable with the host:port of a real
// ZooKeeper 3.8 that nobody else uses: standalone, with a tick of one second
// and extended types enabled, and with containers checked so rarely
// (-Dznode.container.checkIntervalMs) that the sweep takes no zxid meanwhile.
const diffServer = "DOCENT_ZK_DIFF"

func digestOf(cred string) string {
	sum := sha1.Sum([]byte(cred))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// TestDifferential compares random sequences, frame by frame, with a real
// server. DIFF_RUNS and DIFF_STEPS set how many and how long.
func TestDifferential(t *testing.T) {
	t.Parallel()
	addr := os.Getenv(diffServer)
	if addr == "" {
		t.Skipf("%s is not set: there is no real server to compare with", diffServer)
	}
	runs, steps := envInt("DIFF_RUNS", 40), envInt("DIFF_STEPS", 300)
	start := uint64(envInt("DIFF_SEED", int(time.Now().UnixNano()&0xffffff)))
	failed, stray := 0, 0
	for i := range runs {
		switch diffRun(t, addr, start+uint64(i), steps) {
		case differs:
			if failed++; failed == 5 {
				t.Fatal("stopped after 5 differing runs")
			}
		case inconclusive:
			stray++
		case same:
		}
	}
	t.Logf("%d runs of %d steps from seed %d, %d cut short by the real server", runs, steps, start, stray)
	if stray > 1+runs/50 {
		t.Errorf("%d of %d runs were cut short", stray, runs)
	}
}

func envInt(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return def
}

type outcome int

const (
	same outcome = iota
	differs
	inconclusive
)

// newGen returns the steps of a seed. All names of a run are as long as those of
// any other, so that lengths compare.
func newGen(seed uint64, base string) *gen {
	return &gen{r: rand.New(rand.NewPCG(seed, 1)), base: base}
}

// diffRun reports whether both servers looked the same.
func diffRun(t *testing.T, addr string, seed uint64, steps int) outcome {
	t.Helper()
	srv, err := zktest.Start(zktest.WithSeed(seed), zktest.WithExtendedTypes(), zktest.WithTick(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	sides := [2]*side{{addr: addr}, {addr: srv.Addr()}}
	g := newGen(seed, fmt.Sprintf("/diff%012d/r", time.Now().UnixNano()%1e12))
	for _, sd := range sides {
		sd.prepare(t, g.base)
		defer sd.close(t)
	}
	var done, hashes []string
	for range steps {
		s := g.step()
		var saw [2]string
		for i, sd := range sides {
			saw[i] = sd.perform(t, s)
			events := sd.fence(1 - s.who)
			if i == 0 && events == strayClose {
				t.Logf("seed %d: the real server closed a bystander after\n  %s\n  %s", seed,
					strings.Join(done[max(0, len(done)-8):], "\n  "), s.text)
				return inconclusive
			}
			saw[i] += " |" + events
		}
		done = append(done, s.text+"\n      "+saw[0])
		hashes = append(hashes, hashOf(saw[0], g.base))
		if saw[0] != saw[1] {
			if tail := envInt("DIFF_TAIL", 12); len(done) > tail {
				done = done[len(done)-tail:]
			}
			t.Errorf("seed %d differs after\n  %s\n real %s\n mine %s", seed,
				strings.Join(done, "\n  "), saw[0], saw[1])
			return differs
		}
	}
	recordRun(t, seed, hashes)
	return same
}
