//go:build !race

package simulation_test

// How many schedules run if no variable asks for more.
const (
	schedules                 = 300
	ensembleSchedules         = 100
	ensembleGameSchedules     = 60
	ensembleElectionSchedules = 40
	keeperSchedules           = 60
	watchSchedules            = 100
	crowdSchedules            = 60
	repetitions               = 20
	runsPerSeed               = 4 // in TestSameSeedSameRun
)
