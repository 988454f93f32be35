package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// Clocks of clock_gettime(2) that package time does not offer.
const (
	clockRealtime = 0
	clockBoottime = 7
)

// suspendedTime returns a function that tells how far CLOCK_BOOTTIME has run ahead of
// Go's monotonic clock since now. Both tick alike, but only the former counts the
// time for which the machine was suspended. The client reads it at every write and at
// every look at a hold. So it makes one system call; Go reads its own clock without
// one.
func suspendedTime() (slept func() time.Duration, ok bool) {
	atStart, ok := gettime(clockBoottime)
	if !ok {
		return nil, false
	}
	start := time.Now() // in this order no reading is below 0
	return func() (slept time.Duration) {
		for range 8 {
			before := time.Since(start)
			boot, _ := gettime(clockBoottime)
			slept = boot - atStart - before
			if time.Since(start)-before < noise { // else the thread was interrupted there
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
	// Raw, because it never blocks: the scheduler need not know.
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&ts)), 0) //nolint:gosec // the kernel writes a timespec there
	return time.Duration(ts.Nano()), errno == 0
}
