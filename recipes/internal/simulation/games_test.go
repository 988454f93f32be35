package simulation_test

import "testing"

// ensembleGameSeedsEnv says how many schedules TestEnsembleGameSchedules plays.
const ensembleGameSeedsEnv = "DOCENT_SIM_ENSEMBLE_GAME_SEEDS"

// gamesAlone and gamesEnsemble are the settings of the other kinds of locks.
var (
	gamesAlone    = alone.of("TestGameSeed", games)
	gamesEnsemble = ensemble.of("TestEnsembleGameSeed", games)
)

// of returns the setting with other games.
func (k setting) of(test string, games []game) setting {
	k.test, k.games = test, games
	return k
}

// TestEnsembleGameSchedules plays many seeds of readers and writers, permits and several locks
// at once, on an ensemble. On a server on its own crowds do.
func TestEnsembleGameSchedules(t *testing.T) {
	t.Parallel()
	count := number(t, ensembleGameSeedsEnv, ensembleGameSchedules)
	if sum := playMany(t, gamesEnsemble, count); !t.Failed() {
		sum.wantGames(t, int(count))
	}
}

// TestGameSeed plays one schedule and prints what happened in it.
func TestGameSeed(t *testing.T) {
	t.Parallel()
	playOne(t, gamesAlone)
}

// TestEnsembleGameSeed does so on an ensemble.
func TestEnsembleGameSeed(t *testing.T) {
	t.Parallel()
	playOne(t, gamesEnsemble)
}

// TestKnownGameSeeds plays the schedules that once found something, or that find
// a lock which is wrong in the way named.
func TestKnownGameSeeds(t *testing.T) {
	t.Parallel()
	playFile(t, gamesAlone, "testdata/game-seeds")
}
