//go:build race

package recipes_test

// givingUpEach is less under the race detector, which slows the crowd down.
const givingUpEach = 100
