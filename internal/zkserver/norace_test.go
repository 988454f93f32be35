//go:build !race

package zkserver_test

// See race_test.go.
const leaveWatches = true
