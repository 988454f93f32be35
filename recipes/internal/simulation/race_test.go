//go:build race

package simulation_test

// How many schedules run if no variable asks for more. The race detector makes a
// schedule about ten times as long; make simulation and make determinism play
// many more.
const (
	schedules                 = 24
	ensembleSchedules         = 16
	ensembleGameSchedules     = 32
	ensembleElectionSchedules = 32
	keeperSchedules           = 12
	watchSchedules            = 8
	crowdSchedules            = 6
	repetitions               = 2
	runsPerSeed               = 2 // in TestSameSeedSameRun
)
