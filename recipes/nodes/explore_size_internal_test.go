//go:build !race

package nodes

// exploredFaults is how many disturbances TestExploreKeeper plays.
const exploredFaults = 3
