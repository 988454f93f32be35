//go:build race

package shared_test

// exploresLess leaves out programs, for the race detector slows them down.
const exploresLess = true
