// Package linear_test checks with porcupine that what callers of shared and
// atomic values see is linearizable. It does so in simulated schedules of faults,
// and on a real ensemble beside Curator.
package linear_test
