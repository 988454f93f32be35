package main

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLabels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value      float64
		unit, want string
	}{
		{0, "s", "0 s"},
		{.00025, "s", "250 µs"},
		{.005, "s", "5 ms"},
		{2.5, "s", "2.5 s"},
		{90, "s", "1.5 min"},
		{.1 + .2, "ops", "0.3 ops/s"},
		{12500, "ops", "12.5 K ops/s"},
		{1500, "short", "1.5 K"},
	} {
		if got := label(c.value, c.unit); got != c.want {
			t.Errorf("%v in %s is %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for most, want := range map[float64]string{
		0:    "[0 1]",
		1:    "[0 0.2 0.4 0.6 0.8 1]",
		7.3:  "[0 2 4 6 8]",
		130:  "[0 50 100 150]",
		.012: "[0 0.0025 0.005 0.0075 0.01 0.0125]",
	} {
		if got := fmt.Sprintf("%.4g", ticks(most)); got != want {
			t.Errorf("up to %v the ticks are %s, want %s", most, got, want)
		}
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	none := math.NaN()
	got := runs([]float64{none, 1, 2, none, 3, math.Inf(1), 4, 5})
	if want := [][2]int{{1, 3}, {4, 5}, {6, 8}}; !slices.Equal(got, want) {
		t.Errorf("the runs are %v, want %v", got, want)
	}
}

// A part of a whole has the unit of a dashboard's percentages.
func TestLabelOfAPart(t *testing.T) {
	t.Parallel()
	if got := label(.25, "percentunit"); got != "25 %" {
		t.Errorf("a quarter is %q", got)
	}
}

// A chart draws a line for each run, a dot for a point on its own, and two axes for two
// units.
func TestChart(t *testing.T) {
	t.Parallel()
	none := math.NaN()
	s := span{long: 4 * time.Second, step: time.Second}
	lines := []series{
		{"a", "s", false, []float64{.1, .2, none, .4, none}},
		{"b", "ops", true, []float64{none, 10, 20, 15, 0}},
	}
	got := chart(lines, s, 400, 200)
	for part, want := range map[string]int{"<circle": 1, `fill="none"`: 2, "400 ms<": 1, "20 ops/s<": 1, "NaN": 0, ">0:04<": 1} {
		if n := strings.Count(got, part); n != want {
			t.Errorf("the chart has %q %d times, want %d:\n%s", part, n, want, got)
		}
	}
}

// A legend has the rows that there are, and says how many names are missing.
func TestLegendOf(t *testing.T) {
	t.Parallel()
	var lines []series
	for i := range 9 {
		lines = append(lines, series{name: fmt.Sprintf("a line with number %d", i)})
	}
	all, taken := legendOf(lines, 400, 5)
	if len(all) != 9 || taken != 5 {
		t.Errorf("%d names take %d rows, want 9 in 5", len(all), taken)
	}
	some, taken := legendOf(lines, 400, 3)
	if taken != 3 || len(some) != 7 || some[6].Name != "and 3 more" {
		t.Errorf("the names in %d rows are %v", taken, some)
	}
}

func TestReduce(t *testing.T) {
	t.Parallel()
	full := image.NewRGBA(image.Rect(0, 0, 40, 20))
	for x := range 40 {
		for y := range 20 {
			full.Set(x, y, color.RGBA{uint8(x), uint8(y * y), 7, 255})
		}
	}
	small := reduce(full)
	if len(small.Palette) != 128 || small.Bounds() != full.Bounds() {
		t.Errorf("%d colors in %v", len(small.Palette), small.Bounds())
	}
	white := image.NewRGBA(image.Rect(0, 0, 2, 2))
	white.Set(1, 1, color.RGBA{1, 2, 3, 255})
	if got := reduce(white).At(1, 1); got != (color.RGBA{1, 2, 3, 255}) {
		t.Errorf("the color became %v", got)
	}
}
