//go:build race

package watches

// underRace says that the race detector watches.
const underRace = true
