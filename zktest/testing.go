package zktest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// SeedEnv names the environment variable that, when set to a number, replaces
// the seed of every server made by [NewServer] without [WithSeed].
const SeedEnv = "ZKTEST_SEED"

// logTail is how many requests a failed test prints.
const logTail = 40

// NewServer starts a server that is closed when the test ends. When the test
// fails, the seed and the last requests are printed. Inside a synctest bubble
// call it with the bubble's own t.
func NewServer(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := Start(testOptions(t, opts)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close() // always nil
		if t.Failed() {
			t.Log(s.failureReport())
		}
	})
	return s
}

// testOptions adds to the options what a test wants: the seed asked for from
// outside, and a way to fail.
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

func (s *Server) failureReport() string {
	return s.requestReport() + "left behind:\n" + s.Dump()
}

func (s *Server) requestReport() string {
	var b strings.Builder
	fmt.Fprintf(&b, "zktest: seed %d: repeat with %s=%d or zktest.WithSeed(%d)\n",
		s.Seed(), SeedEnv, s.Seed(), s.Seed())
	log := s.Log()
	if cut := len(log) - logTail; cut > 0 {
		log = log[cut:]
	}
	b.WriteString("last requests:\n")
	for _, r := range log {
		fmt.Fprintln(&b, r)
	}
	return b.String()
}
