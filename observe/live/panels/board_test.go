package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

// ours is the dashboard that Docent has.
func ours(t *testing.T) board {
	t.Helper()
	b, err := readBoard("../../dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestExpand(t *testing.T) {
	t.Parallel()
	values := map[string]string{"job": ".*", "instance": ".*", "__rate_interval": "4000ms"}
	for expr, want := range map[string]string{
		`rate(a{job=~"$job"}[$__rate_interval])`:      `rate(a{job=~".*"}[4000ms])`,
		`rate(a{job=~"${job}"}[[[__rate_interval]]])`: `rate(a{job=~".*"}[4000ms])`,
		`a{b=~"c$"}`: `a{b=~"c$"}`,
	} {
		if got, err := expand(expr, values); err != nil || got != want {
			t.Errorf("%s became %s, error %v, want %s", expr, got, err, want)
		}
	}
	if got, err := expand("a[$interval]", values); err == nil || !strings.Contains(err.Error(), "interval") {
		t.Errorf("a variable without a value became %s, error %v", got, err)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		current, name, want string
		step, scrape        time.Duration
	}{
		{`"$__all"`, "job", ".*", time.Second, time.Second},
		{`["$__all"]`, "job", ".*", time.Second, time.Second},
		{`"shop"`, "job", "shop", time.Second, time.Second},
		{`["shop", "cron"]`, "job", "(shop|cron)", time.Second, time.Second},
		{`"shop"`, "__rate_interval", "4000ms", time.Second, time.Second},
		{`"shop"`, "__rate_interval", "75000ms", time.Minute, 15 * time.Second},
		{`"shop"`, "__interval", "60000ms", time.Minute, 15 * time.Second},
	} {
		var b board
		text := `{"templating": {"list": [{"name": "source", "type": "datasource"}, {"name": "job", "allValue": ".*", "current": {"value": ` + c.current + `}}]}}`
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			t.Fatal(err)
		}
		if got, err := b.variables(c.step, c.scrape); err != nil || got[c.name] != c.want {
			t.Errorf("%s is %q for %s, error %v, want %q", c.name, got[c.name], c.current, err, c.want)
		}
	}
	b := board{}
	b.Templating.List = []variable{{Name: "job"}}
	if got, err := b.variables(time.Second, time.Second); err == nil {
		t.Errorf("a variable without a value is %q", got["job"])
	}
}

// Every query of the dashboard is one for Prometheus once it has its values, and its
// panel has a scale for it.
func TestQueries(t *testing.T) {
	t.Parallel()
	b := ours(t)
	values, err := b.variables(time.Second, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range b.Panels {
		if !p.isRow() && len(p.Targets) == 0 {
			t.Errorf("panel %q has no query", p.Title)
		}
		for _, query := range p.Targets {
			expr, err := expand(query.Expr, values)
			if err == nil {
				_, err = parser.ParseExpr(expr)
			}
			if err != nil {
				t.Errorf("panel %q: %v", p.Title, err)
			}
			if unit, _, err := p.scale(query.RefID); err != nil || unit == "" {
				t.Errorf("panel %q: the unit of query %s is %q, error %v", p.Title, query.RefID, unit, err)
			}
		}
	}
}

// Failures in a second have an axis of their own beside seconds.
func TestScale(t *testing.T) {
	t.Parallel()
	found := 0
	for _, p := range ours(t).Panels {
		for _, query := range p.Targets {
			if unit, right, err := p.scale(query.RefID); strings.HasSuffix(query.LegendFormat, "/s") {
				if found++; unit != "ops" || !right || err != nil {
					t.Errorf("panel %q: %s has the unit %q, at the right: %v, error %v", p.Title, query.LegendFormat, unit, right, err)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no query is of failures in a second")
	}
}

func TestLegend(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"recipe": "LeaderLatch", "end": "lease"}
	if got, want := legend("1 % {{recipe}} {{ lock }} {{end}}", labels), "1 % LeaderLatch lease"; got != want {
		t.Errorf("the legend is %q, want %q", got, want)
	}
}

func TestPixels(t *testing.T) {
	t.Parallel()
	for grid, want := range map[rect]rect{
		{0, 0, 24, 1}:  {0, 0, 1000, 30},
		{0, 1, 12, 8}:  {0, 38, 496, 296},
		{12, 1, 12, 8}: {504, 38, 496, 296},
	} {
		if got := grid.pixels(1000); got != want {
			t.Errorf("%+v is %+v, want %+v", grid, got, want)
		}
	}
	b := ours(t)
	if err := b.check(); err != nil {
		t.Error(err)
	}
	for i, p := range b.Panels {
		in := p.GridPos.pixels(pageWidth)
		if in.X < 0 || in.X+in.W > pageWidth || in.Y+in.H > b.height(pageWidth) {
			t.Errorf("panel %q is outside of the page: %+v", p.Title, in)
		}
		for _, q := range b.Panels[:i] {
			if in.overlaps(q.GridPos.pixels(pageWidth)) {
				t.Errorf("panels %q and %q overlap on the page", q.Title, p.Title)
			}
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, wrong := range [][]rect{
		{{0, 0, 12, 8}, {11, 7, 12, 8}},
		{{20, 0, 5, 8}},
		{{0, 0, 12, 0}},
	} {
		var b board
		for _, p := range wrong {
			b.Panels = append(b.Panels, panel{GridPos: p})
		}
		if b.check() == nil {
			t.Errorf("%v is a layout", wrong)
		}
	}
}
