package live_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/docent-go/docent/observe"
)

func file(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// dashboard maps the title of each panel to its queries, with values for Grafana's
// variables.
func dashboard(t *testing.T) map[string][]string {
	t.Helper()
	var board struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(file(t, "../dashboard.json"), &board); err != nil {
		t.Fatal(err)
	}
	panels := map[string][]string{}
	for _, p := range board.Panels {
		if p.Type == "row" {
			continue
		}
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "1m", "$job", ".*", "$instance", ".*").Replace(target.Expr)
			panels[p.Title] = append(panels[p.Title], expr)
		}
		if len(panels[p.Title]) == 0 {
			t.Errorf("panel %q has no query", p.Title)
		}
	}
	if len(panels) == 0 {
		t.Fatal("the dashboard has no panel")
	}
	return panels
}

type alert struct {
	Alert, Expr string
	Annotations struct {
		RunbookURL string `yaml:"runbook_url"`
	}
}

// alerts maps the name of each alert to the alert.
func alerts(t *testing.T) map[string]alert {
	t.Helper()
	var rules struct {
		Groups []struct{ Rules []alert }
	}
	if err := yaml.Unmarshal(file(t, "../alerts.yaml"), &rules); err != nil {
		t.Fatal(err)
	}
	all := map[string]alert{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			all[r.Alert] = r
		}
	}
	if len(all) == 0 {
		t.Fatal("there is no alert")
	}
	return all
}

// exported maps the name of each series that the adapters export to its labels.
func exported() map[string][]string {
	all := map[string][]string{}
	for _, m := range observe.Metrics() {
		name, of := m.PrometheusName(), append(m.PrometheusLabels(), "job", "instance")
		if m.Kind != observe.Histogram {
			all[name] = of
			continue
		}
		all[name+"_count"], all[name+"_sum"], all[name+"_bucket"] = of, of, append(of, "le")
	}
	return all
}

// check parses a query, and checks that the adapters export what it names. It returns the
// names of the series.
func check(t *testing.T, where, expr string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v in %s", where, err, expr)
		return nil
	}
	known := exported()
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			names = append(names, n.Name)
			if known[n.Name] == nil {
				t.Errorf("%s: no adapter exports %s", where, n.Name)
			}
			for _, m := range n.LabelMatchers {
				if m.Name != labels.MetricName && !slices.Contains(known[n.Name], m.Name) {
					t.Errorf("%s: %s has no label %s", where, n.Name, m.Name)
				}
			}
		case *parser.AggregateExpr:
			parser.Inspect(n.Expr, func(below parser.Node, _ []parser.Node) error {
				of, ok := below.(*parser.VectorSelector)
				for _, label := range n.Grouping {
					if ok && !slices.Contains(known[of.Name], label) {
						t.Errorf("%s: %s has no label %s", where, of.Name, label)
					}
				}
				return nil
			})
		}
		return nil
	})
	return names
}

// The dashboard and the alerts name only series and labels that the adapters export, and
// the dashboard shows every metric.
func TestNamesInFiles(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for title, exprs := range dashboard(t) {
		for _, expr := range exprs {
			for _, name := range check(t, "panel "+title, expr) {
				shown[regexp.MustCompile(`_(count|sum|bucket)$`).ReplaceAllString(name, "")] = true
			}
		}
	}
	for name, a := range alerts(t) {
		if len(check(t, "alert "+name, a.Expr)) == 0 {
			t.Errorf("alert %s names no series", name)
		}
	}
	for _, m := range observe.Metrics() {
		if !shown[m.PrometheusName()] {
			t.Errorf("no panel shows %s", m.PrometheusName())
		}
	}
}

// Every alert has a section of the page that says what to do, and a case in which it
// fires.
func TestAlertsAreExplained(t *testing.T) {
	t.Parallel()
	page := string(file(t, "../../docs/runbook.md"))
	cases := string(file(t, "../alerts_test.yaml"))
	for name, a := range alerts(t) {
		if !strings.Contains(page, "\n## "+name+"\n") {
			t.Errorf("docs/runbook.md has no section %s", name)
		}
		if !strings.HasSuffix(a.Annotations.RunbookURL, "/docs/runbook.md#"+strings.ToLower(name)) {
			t.Errorf("alert %s: the runbook is %q", name, a.Annotations.RunbookURL)
		}
		if !strings.Contains(cases, `alertname="`+name+`"`) {
			t.Errorf("alerts_test.yaml has no case in which %s fires", name)
		}
	}
}

// The page lists every metric, with its labels.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	rows := map[string]string{}
	for line := range strings.Lines(string(file(t, "../../docs/observability.md"))) {
		if row := regexp.MustCompile("^\\| `((?:docent|db)\\.[a-z.]+)` \\|").FindStringSubmatch(line); row != nil {
			rows[row[1]] = line
		}
	}
	for _, m := range observe.Metrics() {
		row := rows[m.Name]
		delete(rows, m.Name)
		if row == "" {
			t.Errorf("docs/observability.md has no row for %s", m.Name)
		}
		for _, label := range m.Labels {
			if !strings.Contains(row, "`"+label+"`") {
				t.Errorf("the row of %s does not name the label %s", m.Name, label)
			}
		}
	}
	if len(rows) != 0 {
		t.Errorf("docs/observability.md has rows for metrics that nothing exports: %v", slices.Sorted(maps.Keys(rows)))
	}
}

// promtool takes the rules, and each alert fires when it should.
func TestPromtool(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"check", "rules", "../alerts.yaml"}, {"test", "rules", "../alerts_test.yaml"}} {
		out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput()
		if err != nil {
			t.Errorf("promtool %s: %v (it is in Debian's package prometheus)\n%s", strings.Join(args, " "), err, out)
		}
	}
}
