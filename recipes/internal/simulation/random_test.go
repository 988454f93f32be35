package simulation_test

import (
	"math/rand/v2"
	"time"
)

// jitter is the randomness of one client. Several of its goroutines may draw
// at one instant, in an order that nobody controls, so what they get depends
// on the seed, the client and the instant, and not on who came first. Those who
// draw together get the same; what they then send together is ordered by nic.
func (w *world) jitter(client string) func() float64 {
	base := generator(w.seed, client).Uint64()
	return func() float64 {
		return rand.New(rand.NewPCG(base, uint64(time.Since(w.start)))).Float64()
	}
}
