package zkserver_test

import (
	"bufio"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

// recordedRuns returns the file with what a real server answered: a line for each
// seed, with a hash for each step. `DIFF_RECORD=1 make differential` adds to it.
func recordedRuns(v zktest.Version) string { return "testdata/zookeeper-" + v.String() + ".txt" }

// hashOf shortens what was seen of a step, without the name of the run.
func hashOf(saw, base string) string {
	saw = strings.ReplaceAll(saw, base, "/R")
	saw = strings.ReplaceAll(saw, base[:strings.LastIndexByte(base, '/')], "/P")
	h := fnv.New32a()
	_, _ = h.Write([]byte(saw))
	return strconv.FormatUint(uint64(h.Sum32()), 36)
}

// TestRecorded repeats runs that a real server has been through and compares
// with what it answered then. It needs no real server; to see the difference a
// failure is about, run TestDifferential with its seed.
func TestRecorded(t *testing.T) {
	t.Parallel()
	for _, v := range releases() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			replayAll(t, v)
		})
	}
}

func replayAll(t *testing.T, v zktest.Version) {
	t.Helper()
	f, err := os.Open(recordedRuns(v))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	runs := 0
	for sc.Scan() {
		fields := strings.Fields(sc.Text())
		seed, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		replay(t, v, seed, fields[1:])
		runs++
	}
	if err := sc.Err(); err != nil || runs == 0 {
		t.Errorf("%d runs, %v", runs, err)
	}
}

func replay(t *testing.T, v zktest.Version, seed uint64, want []string) {
	t.Helper()
	srv, err := zktest.Start(zktest.WithSeed(seed), zktest.WithExtendedTypes(), zktest.WithTick(time.Second), zktest.WithVersion(v))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	sd := &side{addr: srv.Addr()}
	g := newGen(seed, "/diff000000000000/r")
	sd.prepare(t, g.base)
	defer sd.close(t)
	for i, hash := range want {
		s := g.step()
		saw := sd.perform(t, s) + " |" + sd.fence(1-s.who)
		if got := hashOf(saw, g.base); got != hash {
			t.Errorf("seed %d, step %d: the real server answered otherwise\n %s\n %s", seed, i, s.text, saw)
			return
		}
	}
}
