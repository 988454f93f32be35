//go:build !race

package zktest_test

// See race_test.go.
const leaveWatches = true
