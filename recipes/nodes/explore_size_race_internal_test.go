//go:build race

package nodes

// exploredFaults is how many disturbances TestExploreKeeper plays: the race detector makes it ten times slower.
const exploredFaults = 2

// ShortProgram is how many calls TestEveryShortProgram plays in each program.
const ShortProgram = 4

// OrderSwitches is how many switches TestExploreOrders plays in programs of few requests.
const OrderSwitches = 1
