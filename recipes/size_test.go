//go:build !race

package recipes_test

// The sizes of some tests. make simulation runs the crowds without the race detector.
const (
	givingUpEach     = 500  // how often each of twenty goroutines gives up a wait
	drainingClients  = 10   // each has a hundred waiters
	countedCycles    = 100  // of each contender, while the costs are counted
	crowdBeside      = 400  // beside a lone contender
	turnsBeside      = 10   // of that one
	overlappingTurns = 1000 // of all multi-locks whose lists overlap
)
