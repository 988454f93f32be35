//go:build !race

package simulation_test

// How many schedules run if no variable asks for more.
const (
	schedules                 = 300
	ensembleSchedules         = 100
	gameSchedules             = 160
	ensembleGameSchedules     = 60
	electionSchedules         = 120
	ensembleElectionSchedules = 40
	keeperSchedules           = 60
	watchSchedules            = 100
	crowdSchedules            = 200
	repetitions               = 20
	runsPerSeed               = 4 // in TestSameSeedSameRun
)
