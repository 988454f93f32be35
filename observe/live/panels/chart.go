package main

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// stroke is the color of a line.
func stroke(i int) string {
	colors := []string{
		"#3a7d44", "#d9a300", "#2a8fbd", "#e0752d", "#c4302b", "#1f5fa8", "#a3399e", "#6a54a3",
		"#7fae5b", "#8c6d1f", "#62c1c9", "#f2a477", "#e57f84", "#7fa8dc", "#d08bd0", "#4d4d4d",
	}
	return colors[i%len(colors)]
}

// The space that a chart has around its lines, in pixels.
const (
	axisBelow = 18
	axisAbove = 6
	noAxis    = 14
)

// axis is a value axis from 0 on.
type axis struct {
	values []float64
	labels []string
}

// axisOf is the axis of the lines of one side; it has no values if there is no such line.
func axisOf(lines []series, right bool) (a axis) {
	most, unit, used := 0.0, "", false
	for _, line := range lines {
		if line.right == right {
			most, unit, used = max(most, line.most()), line.unit, true
		}
	}
	if !used {
		return a
	}
	a.values = ticks(most)
	for _, v := range a.values {
		a.labels = append(a.labels, label(v, unit))
	}
	return a
}

// width is the space that the labels take.
func (a axis) width() float64 {
	most := float64(noAxis)
	for _, l := range a.labels {
		most = max(most, textWidth(l)+6)
	}
	return most
}

// height is the part of the chart's height at which a value is.
func (a axis) height(v float64) float64 { return v / a.values[len(a.values)-1] }

// chart is an SVG of the lines, with a time axis from 0:00 on.
func chart(lines []series, s span, width, height int) string {
	axes := map[bool]axis{false: axisOf(lines, false), true: axisOf(lines, true)}
	left, right := axes[false].width(), float64(width)-axes[true].width()
	bottom := float64(height - axisBelow)
	x := func(i int) float64 { return left + float64(i)/float64(s.points()-1)*(right-left) }
	level := func(part float64) float64 { return bottom - part*(bottom-axisAbove) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg width="%d" height="%d" fill="#585f66">`, width, height)
	for _, side := range []bool{false, true} {
		a, at, anchor := axes[side], left-5, "end"
		if side {
			at, anchor = right+5, "start"
		}
		for i, v := range a.values {
			y := level(a.height(v))
			if !side {
				fmt.Fprintf(&b, `<path d="M%.1f %.1fH%.1f" stroke="#e7e9eb"/>`, left, y, right)
			}
			fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, at, y+3.5, anchor, a.labels[i])
		}
	}
	every := max(s.long/6, s.step)
	for at := time.Duration(0); at <= s.long; at += every {
		i := int(at / s.step)
		fmt.Fprintf(&b, `<path d="M%.1f %.1fV%d" stroke="#e7e9eb"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`,
			x(i), bottom, axisAbove, x(i), height-4, clock(at))
	}
	for i, line := range lines {
		y := func(at int) float64 { return level(axes[line.right].height(line.points[at])) }
		for _, run := range runs(line.points) {
			var path strings.Builder
			for at := run[0]; at < run[1]; at++ {
				fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(at-run[0], 1)], x(at), y(at))
			}
			if run[1]-run[0] == 1 {
				fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="2" fill="%s"/>`, x(run[0]), y(run[0]), stroke(i))
				continue
			}
			fmt.Fprintf(&b, `<path d="%sV%.1fH%.1fZ" fill="%s" fill-opacity=".06"/>`, path.String(), bottom, x(run[0]), stroke(i))
			fmt.Fprintf(&b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.3"/>`, path.String(), stroke(i))
		}
	}
	b.WriteString("</svg>")
	return b.String()
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

func textWidth(s string) float64 { return letter * float64(utf8.RuneCountInString(s)) }

const letter = 6.3 // of text in the smallest size, at most
