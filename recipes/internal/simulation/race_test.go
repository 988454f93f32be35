//go:build race

package simulation_test

// What runs when nobody asks for more. The race detector makes a schedule
// about ten times as long.
const (
	schedules             = 60
	ensembleSchedules     = 10
	gameSchedules         = 16
	ensembleGameSchedules = 16
	keeperSchedules       = 40
	repetitions           = 3
)
