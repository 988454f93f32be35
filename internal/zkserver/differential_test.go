//go:build differential

package zkserver_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// diffServers names the environment variable with the host:port of real servers,
// separated by commas. Each is standalone, without other users, and of a release
// that zktest.ParseVersion knows. Each has a tick of one second, extended types, quotas
// that are enforced, and the users and the scheme of the TestLogin tests,
// and sees its clients under their own addresses. Each sweeps containers so rarely
// (-Dznode.container.checkIntervalMs) that the sweep takes no zxid during the run.
// Two runs at a time must not share a server.
const diffServers = "DOCENT_ZK_DIFF"

// TestDifferential compares random sequences of requests, frame by frame, with
// real servers. DIFF_OPS says how many requests there are at least, DIFF_STEPS how
// many make a run; DIFF_SEED is the seed of the first run. `make differential`
// starts the servers.
func TestDifferential(t *testing.T) {
	t.Parallel()
	if os.Getenv(diffServers) == "" {
		t.Fatalf("%s names no real server to compare with: use make differential", diffServers)
	}
	addrs := strings.Split(os.Getenv(diffServers), ",")
	steps := fromEnv(t, "DIFF_STEPS", 300)
	runs := (fromEnv(t, "DIFF_OPS", 30_000) + steps - 1) / steps
	start := fromEnv(t, "DIFF_SEED", time.Now().UnixNano()&0xffffff)
	t.Logf("%d runs of %d steps from seed %d", runs, steps, start)
	var next, done, ops, failed atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d runs with %d requests, %d differ", done.Load(), ops.Load(), failed.Load())
		if done.Load() != runs {
			t.Errorf("%d of %d runs were made", done.Load(), runs)
		}
	})
	for _, addr := range addrs {
		t.Run(addr, func(t *testing.T) {
			t.Parallel()
			release := releaseOf(t, addr)
			t.Logf("compared with zktest as %v", release)
			for i := next.Add(1) - 1; i < runs && failed.Load() < 5; i = next.Add(1) - 1 {
				n, same := diffRun(t, addr, release, start+i, steps)
				if ops.Add(n); !same {
					failed.Add(1)
				}
				done.Add(1)
			}
		})
	}
}

func fromEnv(t *testing.T, name string, def int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return def
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is no positive number", name, text)
	}
	return n
}

// expiryEvery is how rare the runs are that end with the expiry of a session: it
// takes seconds.
const expiryEvery = 40

// diffRun makes one run on both servers. It returns the number of requests and
// whether both looked the same.
func diffRun(t *testing.T, addr string, release zktest.Version, seed, steps int64) (ops int64, same bool) {
	t.Helper()
	opts := append(loginOptions(loginOptional), zktest.WithSeed(uint64(seed)), zktest.WithExtendedTypes(),
		zktest.WithTick(time.Second), zktest.WithVersion(release))
	srv, err := zktest.Start(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	sides := [2]*side{{addr: addr}, {addr: srv.Addr()}}
	parent := fmt.Sprintf("/diff%012d", time.Now().UnixNano()%1e12)
	g := newGen(uint64(seed), parent+"/r")
	for _, sd := range sides {
		sd.prepare(t, g.base)
		defer sd.close(t)
		if g.odd == nil {
			continue
		}
		if err := sd.prepareLater(g.base); err != nil {
			t.Fatal(err)
		}
		defer sd.cleanLater(t, g.base)
	}
	var done, hashes []string
	compare := func(text string, saw [2]string) bool {
		done = append(done, text+"\n      "+saw[0])
		if saw[0] == saw[1] {
			return true
		}
		t.Errorf("seed %d differs (DIFF_SEED=%d DIFF_OPS=1 DIFF_STEPS=%d make differential) after\n  %s\n real %s\n mine %s",
			seed, seed, steps, strings.Join(done[max(0, len(done)-12):], "\n  "), saw[0], saw[1])
		return false
	}
	for range steps {
		s := g.step()
		ops += int64(max(1, len(s.batch)))
		var saw [2]string
		for i, sd := range sides {
			saw[i] = sd.perform(t, s) + " |" + sd.fence(1-s.who)
		}
		if hashes = append(hashes, hashOf(saw[0], g.base)); !compare(s.text, saw) {
			return ops, false
		}
	}
	recordRun(t, release, uint64(seed), hashes)
	if seed%expiryEvery != 0 {
		return ops, true
	}
	var saw [2]string
	who := g.pick(2)
	for _, sd := range sides {
		sd.abandon(t, who, parent+"/gone")
	}
	for i, sd := range sides {
		saw[i] = sd.expiry(t, who)
	}
	return ops, compare(fmt.Sprintf("client %d expires", who), saw)
}

// recordRun adds what a real server answered to the runs that every run of the
// tests repeats, if DIFF_RECORD is set.
func recordRun(t *testing.T, release zktest.Version, seed uint64, hashes []string) {
	t.Helper()
	if os.Getenv("DIFF_RECORD") == "" {
		return
	}
	f, err := os.OpenFile(recordedRuns(release), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(f, seed, strings.Join(hashes, " ")); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
