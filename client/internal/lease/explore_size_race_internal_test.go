//go:build race

package lease

// raced says whether the race detector looks on.
const raced = true
