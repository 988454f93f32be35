package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// Clocks of clock_gettime(2) that package time does not offer.
const (
	clockRealtime  = 0
	clockMonotonic = 1
	clockBoottime  = 7
)

// suspendedTime returns how CLOCK_BOOTTIME and CLOCK_MONOTONIC drift apart,
// which they do only while the machine is suspended.
func suspendedTime() (slept func() time.Duration, ok bool) {
	if _, ok := gettime(clockBoottime); !ok {
		return nil, false
	}
	return func() (slept time.Duration) {
		for range 8 {
			before, _ := gettime(clockMonotonic)
			boot, _ := gettime(clockBoottime)
			after, _ := gettime(clockMonotonic)
			slept = boot - before
			if after-before < noise { // else the thread was interrupted there
				break
			}
		}
		return slept
	}, true
}

// noise is how far a reading may be off; the three calls take less than 1 us.
const noise = time.Millisecond

// fake reports whether Go's clock is not the machine's.
func fake() bool {
	wall, ok := gettime(clockRealtime)
	return ok && time.Since(time.Unix(0, int64(wall))).Abs() > time.Hour
}

func gettime(id uintptr) (time.Duration, bool) {
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0) //nolint:gosec // the kernel writes a timespec there
	return time.Duration(ts.Nano()), errno == 0
}
