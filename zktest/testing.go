package zktest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// SeedEnv names an environment variable. If it is set to a number, that number is the
// seed of every server and ensemble that [NewServer] or [NewEnsemble] makes without
// [WithSeed].
const SeedEnv = "ZKTEST_SEED"

// logTail is how many requests a failed test prints.
const logTail = 40

// NewServer starts a server that is closed when the test ends. When the test fails,
// the seed and the last requests are printed. Inside a synctest bubble call it with
// the bubble's own t.
func NewServer(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := Start(testOptions(t, opts)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close() // always nil
		if t.Failed() {
			t.Log(requestReport(s.Seed(), s.Log()) + "left behind:\n" + s.Dump())
		}
	})
	return s
}

// NewEnsemble starts n servers that are closed when the test ends. When the test
// fails, the seed and the last requests are printed. Inside a synctest bubble call it
// with the bubble's own t.
func NewEnsemble(t testing.TB, n int, opts ...Option) *Ensemble {
	t.Helper()
	e, err := StartEnsemble(n, testOptions(t, opts)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = e.Close() // always nil
		if t.Failed() {
			t.Log(requestReport(e.Seed(), e.Log()) + e.dump())
		}
	})
	return e
}

// testOptions adds what a test needs: the seed that the environment asks for, and a
// way to fail the test.
func testOptions(t testing.TB, opts []Option) []Option {
	t.Helper()
	if text := os.Getenv(SeedEnv); text != "" {
		seed, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			t.Fatalf("zktest: %s=%q: %v", SeedEnv, text, err)
		}
		opts = append([]Option{WithSeed(seed)}, opts...)
	}
	return append(opts, optionFunc(func(c *config) {
		c.fatal = func(err error) {
			t.Helper()
			t.Fatal(err)
		}
	}))
}

// requestReport says how to repeat a test and what its last requests were.
func requestReport(seed uint64, log []Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "zktest: seed %d: repeat with %s=%d or zktest.WithSeed(%d)\n", seed, SeedEnv, seed, seed)
	if cut := len(log) - logTail; cut > 0 {
		log = log[cut:]
	}
	b.WriteString("last requests:\n")
	for _, r := range log {
		fmt.Fprintln(&b, r)
	}
	return b.String()
}
