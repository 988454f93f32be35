// Package measure makes figures of what was measured.
package measure

import (
	"math"
	"slices"
)

// Percentile is the least value that so many percent of the sorted values do not exceed,
// by the nearest rank. It is NaN of no values.
func Percentile(sorted []float64, percent float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median is the middle value, or the mean of the two in the middle. Values that are NaN
// do not count; of no values it is NaN.
func Median(values []float64) float64 {
	var sorted []float64
	for _, v := range values {
		if !math.IsNaN(v) {
			sorted = append(sorted, v)
		}
	}
	if len(sorted) == 0 {
		return math.NaN()
	}
	slices.Sort(sorted)
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// Turns returns in which order n peers have their turn in a round. Each round begins
// with another peer, and every second round goes backwards. So no peer always
// follows the same one.
func Turns(round, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = (i + round) % n
	}
	if round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}
