package zkserver_test

import (
	"crypto/sha1"
	"encoding/base64"
	"math/rand/v2"
)

func digestOf(cred string) string {
	sum := sha1.Sum([]byte(cred))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// evenSeeds are runs without odd requests, as many recorded runs are older than those.
const evenSeeds = 99

// newGen returns the steps of a seed. The names of all runs have the same length,
// so that lengths compare.
func newGen(seed uint64, base string) *gen {
	g := &gen{r: rand.New(rand.NewPCG(seed, 1)), base: base}
	if seed > evenSeeds {
		g.odd = rand.New(rand.NewPCG(seed, 2))
		g.quotas = seed%4 == 0
	}
	return g
}
