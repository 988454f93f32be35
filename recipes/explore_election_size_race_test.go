//go:build race

package recipes_test

// The programs of elections in a run of all tests.
const (
	electionCalls   = 4
	electionsInLine = 3 // goroutines that lead or wait at once
)
