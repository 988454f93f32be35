package clock_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/internal/clock"
)

func TestSystemReadsTheSleepOnLinux(t *testing.T) {
	t.Parallel()
	if clock.System().Slept == nil {
		t.Error("CLOCK_BOOTTIME is not read")
	}
}

// A machine that is awake has slept no longer than before, however much time
// has passed.
func TestSleepStandsStillWhileAwake(t *testing.T) {
	t.Parallel()
	slept := clock.System().Slept
	before, begun := slept(), time.Now()
	for time.Since(begun) < 50*time.Millisecond {
		if now := slept(); now < 0 || (now-before).Abs() > 10*time.Millisecond {
			t.Fatalf("slept %v, then %v, %v later", before, now, time.Since(begun))
		}
	}
}
