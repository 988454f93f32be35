package clock_test

import (
	"testing"

	"github.com/docent-go/docent/internal/clock"
)

func TestSystemReadsTheSleepOnLinux(t *testing.T) {
	t.Parallel()
	if clock.System().Slept == nil {
		t.Error("CLOCK_BOOTTIME is not read")
	}
}
