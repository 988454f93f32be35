//go:build !race

package recipes_test

// givingUpEach is how often each of twenty goroutines gives up a wait. make simulation
// runs the test without the race detector.
const givingUpEach = 500
