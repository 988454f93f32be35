//go:build race

package recipes_test

// shortForm is less under the race detector, which slows programs down.
const shortForm = underRace
