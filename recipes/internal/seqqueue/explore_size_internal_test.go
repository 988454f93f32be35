//go:build !race

package seqqueue

// wholeSuite says to explore three members as well as two.
const wholeSuite = true
