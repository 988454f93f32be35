//go:build !race

package nodes

// exploredFaults is how many disturbances TestExploreKeeper plays.
const exploredFaults = 3

// ShortProgram is how many calls TestEveryShortProgram plays in each program.
const ShortProgram = 6

// OrderSwitches is how many switches TestExploreOrders plays in programs of few requests.
const OrderSwitches = 2
