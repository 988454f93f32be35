package main

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

// The measures of a page, in pixels.
const (
	pageWidth    = 1400
	margin       = 12
	pageHead     = 92
	titleHeight  = 20
	lineHeight   = 15
	legendHeight = 16
	padding      = 8
)

// drawing is a panel as the page has it.
type drawing struct {
	rect

	Row                bool
	Title, Description string
	Chart              template.HTML
	Legend             []entry
}

// entry is a name in a legend.
type entry struct {
	Name  string
	Color template.CSS
}

// rows is how many rows a legend or a text takes, if each of its parts has a width.
func rows(widths []float64, width int) int {
	n, used := 1, 0.0
	for _, w := range widths {
		if used > 0 && used+w > float64(width) {
			n, used = n+1, 0
		}
		used += w
	}
	return n
}

// legendOf names as many lines as fit in some rows, and says how many more there are.
func legendOf(lines []series, width, most int) (names []entry, taken int) {
	more := func(n int) entry { return entry{fmt.Sprintf("and %d more", n), "transparent"} }
	var widths []float64
	for i, line := range lines {
		w := textWidth(line.name) + 28
		left := []float64{w}
		if n := len(lines) - i - 1; n > 0 {
			left = append(left, textWidth(more(n).Name)+28)
		}
		if rows(append(slices.Clone(widths), left...), width) > most {
			names, widths = append(names, more(len(lines)-i)), append(widths, left[len(left)-1])
			break
		}
		widths = append(widths, w)
		names = append(names, entry{line.name, template.CSS(stroke(i))}) //nolint:gosec // a constant
	}
	return names, rows(widths, width)
}

// draw draws a panel. Its chart gets the space that title, description and legend leave.
// Grafana gives a third of a panel to the legend, and so does draw. Lines that never
// leave 0 come last there.
func draw(p panel, lines []series, s span, width int) drawing {
	d := drawing{rect: p.GridPos.pixels(width), Row: p.isRow(), Title: p.Title, Description: p.Description}
	if d.Row {
		return d
	}
	zeros := func(l series) int { return cmp.Compare(0, l.most()) }
	slices.SortStableFunc(lines, func(a, b series) int { return cmp.Compare(zeros(a), zeros(b)) })
	inner := d.W - 2*padding
	var taken int
	d.Legend, taken = legendOf(lines, inner, d.H/3/legendHeight)
	var words []float64
	for word := range strings.FieldsSeq(p.Description) {
		words = append(words, textWidth(word+" "))
	}
	height := d.H - 2*padding - titleHeight - rows(words, inner)*lineHeight - taken*legendHeight - 4
	d.Chart = template.HTML(chart(lines, s, inner, height)) //nolint:gosec // made of numbers and units
	return d
}

// page is a template.
const page = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title><style>
body { margin: 0; background: #f4f5f5; font: 11px/15px "DejaVu Sans", sans-serif; color: #24292e; }
header { position: absolute; left: {{.Margin}}px; right: {{.Margin}}px; top: 8px; }
h1 { font-size: 18px; line-height: 24px; margin: 0; }
h2 { font-size: 13px; line-height: 20px; margin: 0; }
p { margin: 0; color: #585f66; }
main { position: absolute; left: {{.Margin}}px; top: {{.Head}}px; }
section { position: absolute; box-sizing: border-box; overflow: hidden; }
section.panel { background: #fff; border: 1px solid #dcdfe3; border-radius: 2px; padding: 7px; }
section.row h2 { line-height: 30px; }
svg { display: block; font-size: 10px; }
ul { margin: 4px 0 0; padding: 0; display: flex; flex-wrap: wrap; }
li { list-style: none; line-height: 16px; margin-right: 10px; white-space: nowrap; }
li i { display: inline-block; width: 12px; height: 3px; margin-right: 4px; vertical-align: 3px; }
</style></head><body>
<header><h1>{{.Title}}</h1><p>{{.Description}}</p><p>{{.Events}}</p></header>
<main>{{range .Drawings}}
<section class="{{if .Row}}row{{else}}panel{{end}}" style="left:{{.X}}px;top:{{.Y}}px;width:{{.W}}px;height:{{.H}}px">
<h2>{{.Title}}</h2>{{if not .Row}}<p>{{.Description}}</p>
{{.Chart}}
<ul>{{range .Legend}}<li><i style="background:{{.Color}}"></i>{{.Name}}</li>{{end}}</ul>{{end}}</section>{{end}}
</main></body></html>
`

// write writes the page. The text events says what happened when.
func write(w io.Writer, b board, drawings []drawing, events string) error {
	parsed, err := template.New("page").Parse(page)
	if err != nil {
		return err
	}
	return parsed.Execute(w, map[string]any{
		"Title": b.Title, "Description": b.Description, "Events": events, "Drawings": drawings,
		"Margin": margin, "Head": pageHead,
	})
}
