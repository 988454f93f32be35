//go:build !race

package watches

const underRace = false
