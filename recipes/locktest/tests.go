package locktest

import (
	"fmt"
	"testing"
)

// Test is one test of the suite. It wants a world of its own.
type Test struct {
	Name string
	run  func(*suite)
}

// Tests are all tests.
func Tests() []Test {
	return []Test{
		{"exclusion", exclusion},
		{"shares", shares},
		{"in order", inOrder},
		{"try to acquire", tryAcquire},
		{"cancelled at every step", cancelled},
		{"every request is lost", lostRequests},
		{"killed at every answer", killedAtEveryAnswer},
		{"lost while holding", lostWhileHolding},
		{"lost while waiting", lostWhileWaiting},
		{"node deleted", nodeDeleted},
		{"do", do},
		{"release", release},
	}
}

// Run runs the test. A part of it that never ends is ended by the deadline of
// the test binary; everything it waits for is bounded.
func (x Test) Run(t *testing.T, w World, k Kind) {
	t.Helper()
	s := &suite{T: t, World: w, kind: k}
	s.begin()
	x.run(s)
	s.eventually(func() error {
		if left := s.Goroutines(); len(left) > 0 {
			return fmt.Errorf("%d goroutines are left, one of them:\n%s", len(left), left[0])
		}
		return nil
	})
}
