package zktest_test

import (
	"math"
	"testing"
	"testing/synctest"
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
		"zxid":     zktest.WithZxid(-1),
		"epoch":    zktest.WithZxid(math.MaxInt32 << 32),
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

// The first transaction of a server is the one behind the zxid, and that of an ensemble is in the next epoch.
func TestWithZxid(t *testing.T) {
	t.Parallel()
	for _, before := range []int64{0, 41, 7<<32 | 41} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.NewServer(t, zktest.WithZxid(before))
			if err := srv.Create("/a", nil); err != nil || srv.Zxid() != before+1 {
				t.Errorf("zxid %#x, error %v", srv.Zxid(), err)
			}
			e := zktest.NewEnsemble(t, 3, zktest.WithZxid(before))
			time.Sleep(time.Second) // an election
			if got := e.Leader().Zxid(); got>>32 != before>>32+1 {
				t.Errorf("an ensemble begins at %#x", got)
			}
		})
	}
}
