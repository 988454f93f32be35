//go:build race

package recipes_test

// Some tests are smaller under the race detector, which slows them down.
const (
	givingUpEach     = 100
	drainingClients  = 3
	countedCycles    = 40
	crowdBeside      = 120
	turnsBeside      = 2
	overlappingTurns = 300
)
