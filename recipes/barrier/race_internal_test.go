//go:build race

package barrier

const underRace = true
