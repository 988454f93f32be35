//go:build race

package cache

// underRace says that the race detector watches.
const underRace = true
