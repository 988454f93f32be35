//go:build !race

package simulation_test

// What runs when nobody asks for more.
const (
	schedules   = 300
	repetitions = 50
)
