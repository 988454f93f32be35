package main

import (
	"math"
	"strconv"
)

// label is a value of an axis in a unit of Grafana: "s", "ops", "percentunit" or "short".
func label(v float64, unit string) string {
	switch {
	case v == 0 && unit == "s":
		return "0 s"
	case unit == "s" && v < .001:
		return number(v*1e6) + " µs"
	case unit == "s" && v < 1:
		return number(v*1e3) + " ms"
	case unit == "s" && v < 60:
		return number(v) + " s"
	case unit == "s":
		return number(v/60) + " min"
	case unit == "percentunit":
		return number(v*100) + " %"
	case unit == "ops":
		return thousands(v) + " ops/s"
	default:
		return thousands(v)
	}
}

func thousands(v float64) string {
	if v >= 1000 {
		return number(v/1000) + " K"
	}
	return number(v)
}

// number has at most three digits that count.
func number(v float64) string {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		return "?"
	}
	return strconv.FormatFloat(short, 'f', -1, 64)
}

// ticks are round values from 0 to the first that is not below most, about four steps.
func ticks(most float64) []float64 {
	if most <= 0 {
		return []float64{0, 1}
	}
	step := math.Pow(10, math.Floor(math.Log10(most/4)))
	for _, factor := range []float64{1, 2, 2.5, 5, 10} {
		if most <= 5*factor*step {
			step *= factor
			break
		}
	}
	all := []float64{0}
	for i := 1; all[len(all)-1] < most*(1-1e-9); i++ {
		all = append(all, float64(i)*step)
	}
	return all
}
