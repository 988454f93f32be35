package simulation_test

import (
	"math/rand/v2"
	"time"
)

// jitter is the randomness of one client. Several of its goroutines may draw at
// one instant, in an order that the test cannot control. So what they get depends
// on the seed, the client and the instant, and not on their order. Goroutines
// that draw together get the same, and nic orders what they then send together.
func (w *world) jitter(client string) func() float64 {
	base := generator(w.seed, client).Uint64()
	return func() float64 {
		return rand.New(rand.NewPCG(base, uint64(time.Since(w.start)))).Float64()
	}
}
