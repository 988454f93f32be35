package path_test

import (
	"runtime"
	"slices"
	"time"
)

// meter is the state of the process's counters at one moment.
type meter struct {
	at      time.Time
	mallocs uint64
}

func read() meter {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return meter{time.Now(), m.Mallocs}
}

// median of one figure over the rounds.
func median[T any](rounds []T, figure func(T) float64) float64 {
	all := make([]float64, len(rounds))
	for i, s := range rounds {
		all[i] = figure(s)
	}
	slices.Sort(all)
	return all[len(all)/2]
}
