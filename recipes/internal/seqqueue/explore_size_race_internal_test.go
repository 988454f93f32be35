//go:build race

package seqqueue

// wholeSuite is false under the race detector, which slows the explorer down. One
// goroutine explores, so there is little for the detector to see.
const wholeSuite = false
