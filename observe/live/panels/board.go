package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// board is what a picture needs of a dashboard of Grafana.
type board struct {
	Title, Description string

	Panels     []panel
	Templating struct{ List []variable }
}

// panel is a panel, or the title of a row of panels.
type panel struct {
	Type, Title, Description string

	GridPos     rect
	FieldConfig struct {
		Defaults  struct{ Unit string }
		Overrides []override
	}
	Targets []target
}

// override is what differs for the lines of one query.
type override struct {
	Matcher struct {
		ID      string
		Options any
	}
	Properties []struct {
		ID    string
		Value any
	}
}

// scale returns the unit of the lines of a query, and whether their axis is the right one.
func (p panel) scale(refID string) (unit string, right bool, err error) {
	unit = p.FieldConfig.Defaults.Unit
	for _, o := range p.FieldConfig.Overrides {
		if o.Matcher.ID != "byFrameRefID" {
			return "", false, fmt.Errorf("panel %q has an override by %s, and only byFrameRefID can be drawn", p.Title, o.Matcher.ID)
		}
		if o.Matcher.Options != refID {
			continue
		}
		for _, property := range o.Properties {
			switch property.ID {
			case "unit":
				unit = fmt.Sprint(property.Value)
			case "custom.axisPlacement":
				right = property.Value == "right"
			default:
				return "", false, fmt.Errorf("panel %q overrides %s, which cannot be drawn", p.Title, property.ID)
			}
		}
	}
	return unit, right, nil
}

// isRow says that the panel is the title of a row of panels.
func (p panel) isRow() bool { return p.Type == "row" }

// target is a query of a panel.
type target struct{ RefID, Expr, LegendFormat string }

// variable is a variable of the dashboard. Current.Value is a string or a list of strings.
type variable struct {
	Name, Type, AllValue string
	Current              struct{ Value any }
}

// readBoard reads a dashboard. A panel of a type that this program cannot draw is an error.
func readBoard(path string) (board, error) {
	var b board
	text, err := os.ReadFile(path) //nolint:gosec // the user's own file
	if err != nil {
		return b, err
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range b.Panels {
		if !p.isRow() && p.Type != "timeseries" {
			return b, fmt.Errorf("%s: panel %q has type %q, and only timeseries can be drawn", path, p.Title, p.Type)
		}
	}
	return b, nil
}

// variables returns the value of each variable. These are the dashboard's own, and those
// of Grafana for a step between two points and a time between two scrapes.
func (b board) variables(step, scrape time.Duration) (map[string]string, error) {
	values := map[string]string{
		"__interval": seconds(step),
		// As Grafana defines it: at least four scrapes, so that a rate has two at any time.
		"__rate_interval": seconds(max(step+scrape, 4*scrape)),
	}
	for _, v := range b.Templating.List {
		if v.Type == "datasource" {
			continue // names a server, and is in no query
		}
		var chosen []string
		switch current := v.Current.Value.(type) {
		case string:
			chosen = []string{current}
		case []any:
			for _, one := range current {
				chosen = append(chosen, fmt.Sprint(one))
			}
		}
		switch {
		case len(chosen) == 1 && chosen[0] == "$__all" && v.AllValue != "":
			values[v.Name] = v.AllValue
		case len(chosen) == 1 && chosen[0] != "$__all":
			values[v.Name] = chosen[0]
		case len(chosen) > 1:
			values[v.Name] = "(" + strings.Join(chosen, "|") + ")"
		default:
			return nil, fmt.Errorf("the variable %s has the value %v and no allValue; save the dashboard with a value", v.Name, v.Current.Value)
		}
	}
	return values, nil
}

// seconds is a duration as PromQL writes it.
func seconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

var reference = regexp.MustCompile(`\$(\w+)|\$\{(\w+)\}|\[\[(\w+)\]\]`)

// expand puts the values of variables into a query. A variable without a value is an error.
func expand(expr string, values map[string]string) (string, error) {
	var errs error
	expanded := reference.ReplaceAllStringFunc(expr, func(found string) string {
		name := strings.Trim(found, "${}[]")
		value, ok := values[name]
		if !ok {
			errs = errors.Join(errs, fmt.Errorf("the query %s names %s, which is no variable of the dashboard", expr, name))
		}
		return value
	})
	return expanded, errs
}

var labelReference = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// legend is the name of a series. A label that the series does not have is left out.
func legend(format string, labels map[string]string) string {
	name := labelReference.ReplaceAllStringFunc(format, func(found string) string {
		return labels[strings.Trim(found, "{} ")]
	})
	return strings.Join(strings.Fields(name), " ")
}

// rect is a rectangle. In a dashboard its units are columns and rows of a grid.
type rect struct{ X, Y, W, H int }

// The grid of Grafana, in pixels.
const (
	columns   = 24
	rowHeight = 30
	gap       = 8
)

// pixels is the rectangle on a page of the given width.
func (p rect) pixels(width int) rect {
	column := float64(width-(columns-1)*gap) / columns
	left := float64(p.X) * (column + gap)
	return rect{
		X: int(left + .5), Y: p.Y * (rowHeight + gap),
		W: int(float64(p.W)*(column+gap) - gap + .5), H: p.H*(rowHeight+gap) - gap,
	}
}

// overlaps says that two rectangles share a part.
func (p rect) overlaps(q rect) bool {
	return p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H
}

// height is that of a page that has all panels.
func (b board) height(width int) int {
	bottom := 0
	for _, p := range b.Panels {
		in := p.GridPos.pixels(width)
		bottom = max(bottom, in.Y+in.H)
	}
	return bottom
}

// check says which panels overlap, or are outside of the grid.
func (b board) check() error {
	var errs error
	for i, p := range b.Panels {
		if p.GridPos.X < 0 || p.GridPos.Y < 0 || p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > columns {
			errs = errors.Join(errs, fmt.Errorf("panel %q is outside of the grid: %+v", p.Title, p.GridPos))
		}
		for _, q := range b.Panels[:i] {
			if p.GridPos.overlaps(q.GridPos) {
				errs = errors.Join(errs, fmt.Errorf("panels %q and %q overlap", q.Title, p.Title))
			}
		}
	}
	return errs
}
