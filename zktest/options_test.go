package zktest_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/zktest"
)

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]zktest.Option{
		"tick":     zktest.WithTick(0),
		"timeouts": zktest.WithSessionTimeouts(time.Minute, time.Second),
		"latency":  zktest.WithLatency(time.Second, time.Millisecond),
		"sweep":    zktest.WithContainerInterval(-1),
		"frame":    zktest.WithMaxFrame(0),
		"delay":    zktest.WithCommitDelay(-1),
		"clock":    zktest.WithWallClock(nil),
		"listen":   zktest.WithListen("256.0.0.1:1"),
	} {
		if s, err := zktest.Start(o); err == nil {
			t.Errorf("%s: no error", name)
			_ = s.Close()
		}
	}
}

// TestOptionsThatDoNotExist gives values that no constant has.
func TestOptionsThatDoNotExist(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]zktest.Option{
		"version": zktest.WithVersion(99), "profile": zktest.WithProfile(99), "quirk": zktest.WithQuirks(1 << 15),
	} {
		if srv, err := zktest.Start(opt); err == nil {
			_ = srv.Close()
			t.Errorf("a server starts with a %s that does not exist", name)
		}
	}
}
