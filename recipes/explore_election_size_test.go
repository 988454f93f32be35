//go:build !race

package recipes_test

// The programs of elections in a run of all tests.
const (
	electionCalls   = 5
	electionsInLine = 4 // goroutines that lead or wait at once
)
