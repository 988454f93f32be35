//go:build !race

package simulation_test

// What runs when nobody asks for more.
const (
	schedules         = 300
	ensembleSchedules = 100
	repetitions       = 20
)
