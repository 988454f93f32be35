package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// stroke is the color of a line.
func stroke(i int) string {
	colors := []string{
		"#3a7d44", "#d9a300", "#2a8fbd", "#e0752d", "#c4302b", "#1f5fa8", "#a3399e", "#6a54a3",
		"#7fae5b", "#8c6d1f", "#62c1c9", "#f2a477", "#e57f84", "#7fa8dc", "#d08bd0", "#4d4d4d",
	}
	return colors[i%len(colors)]
}

// The space that the axes of a chart take, in pixels.
const (
	axisBelow = 18
	axisAbove = 6
	axisRight = 14
)

// chart is an SVG of the lines, with a time axis from 0:00 on and a value axis from 0 on.
func chart(lines []series, s span, unit string, width, height int) string {
	most := 0.0
	for _, line := range lines {
		most = max(most, line.most())
	}
	values := ticks(most)
	var left float64
	for _, v := range values {
		left = max(left, textWidth(label(v, unit))+6)
	}
	top := values[len(values)-1]
	bottom, right := float64(height-axisBelow), float64(width-axisRight)
	x := func(i int) float64 { return left + float64(i)/float64(s.points()-1)*(right-left) }
	y := func(v float64) float64 { return bottom - v/top*(bottom-axisAbove) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg width="%d" height="%d" fill="#585f66">`, width, height)
	for _, v := range values {
		fmt.Fprintf(&b, `<path d="M%.1f %.1fH%.1f" stroke="#e7e9eb"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
			left, y(v), right, left-5, y(v)+3.5, label(v, unit))
	}
	every := max(s.long/6, s.step)
	for at := time.Duration(0); at <= s.long; at += every {
		i := int(at / s.step)
		fmt.Fprintf(&b, `<path d="M%.1f %.1fV%d" stroke="#e7e9eb"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`,
			x(i), bottom, axisAbove, x(i), height-4, clock(at))
	}
	for i, line := range lines {
		for _, run := range runs(line.points) {
			var path strings.Builder
			for at := run[0]; at < run[1]; at++ {
				fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(at-run[0], 1)], x(at), y(line.points[at]))
			}
			if run[1]-run[0] == 1 {
				fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="2" fill="%s"/>`, x(run[0]), y(line.points[run[0]]), stroke(i))
				continue
			}
			fmt.Fprintf(&b, `<path d="%sV%.1fH%.1fZ" fill="%s" fill-opacity=".06"/>`, path.String(), bottom, x(run[0]), stroke(i))
			fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.3"/>`, path.String(), stroke(i))
		}
	}
	b.WriteString("</svg>")
	return b.String()
}

// clock is a time since the begin of the picture, in minutes and seconds.
func clock(at time.Duration) string {
	whole := int(at.Round(time.Second) / time.Second)
	return fmt.Sprintf("%d:%02d", whole/60, whole%60)
}

// runs are the ranges of points that have values, from the first to behind the last. A
// line is not drawn across points without a value.
func runs(points []float64) [][2]int {
	var all [][2]int
	for i, v := range points {
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
		case len(all) > 0 && all[len(all)-1][1] == i:
			all[len(all)-1][1]++
		default:
			all = append(all, [2]int{i, i + 1})
		}
	}
	return all
}
