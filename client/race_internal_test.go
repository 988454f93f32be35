//go:build race

package client

// underRace says that the race detector watches.
const underRace = true
