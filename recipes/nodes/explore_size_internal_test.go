//go:build !race

package nodes

// exploredFaults is how many disturbances TestExploreKeeper plays.
const exploredFaults = 3

// ShortProgram is how many calls TestExploreShortPrograms plays in each program.
const ShortProgram = 5
