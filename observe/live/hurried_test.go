package live_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// hurry is by how much the rules are faster than alerts.yaml when they run on a live server.
const hurry = 60

// hurried divides all times of an expression: its ranges and offsets, and the bounds of what is in seconds. It also
// returns these bounds, as they were.
func hurried(t *testing.T, expr string, by float64) (faster string, bounds []float64) {
	t.Helper()
	parsed, err := parser.ParseExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	bound := func(e parser.Expr) {
		if n, ok := e.(*parser.NumberLiteral); ok {
			bounds = append(bounds, n.Val)
			n.Val /= by
		}
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			n.Range = time.Duration(float64(n.Range) / by)
		case *parser.VectorSelector:
			n.OriginalOffset = time.Duration(float64(n.OriginalOffset) / by)
		case *parser.BinaryExpr:
			if n.Op.IsComparisonOperator() && inSeconds(n.LHS) {
				bound(n.RHS)
			}
		case *parser.Call:
			if n.Func.Name == "clamp_min" && inSeconds(n.Args[0]) {
				bound(n.Args[1])
			}
		}
		return nil
	})
	return parsed.String(), bounds
}

// inSeconds reports whether the values of an expression are in seconds.
func inSeconds(e parser.Expr) bool {
	switch n := e.(type) {
	case *parser.VectorSelector:
		return strings.HasSuffix(n.Name, "_seconds")
	case *parser.MatrixSelector:
		return inSeconds(n.VectorSelector)
	case *parser.AggregateExpr:
		return inSeconds(n.Expr)
	case *parser.ParenExpr:
		return inSeconds(n.Expr)
	case *parser.BinaryExpr:
		return n.Op == parser.MUL && (inSeconds(n.LHS) || inSeconds(n.RHS))
	case *parser.Call:
		switch n.Func.Name {
		case "histogram_quantile": // of buckets, whose bounds are in seconds
			return strings.Contains(n.Args[1].String(), "_seconds_bucket")
		case "max_over_time", "clamp_min":
			return inSeconds(n.Args[0])
		}
	}
	return false
}

// hurriedRules writes alerts.yaml with all times divided, and returns the path.
func hurriedRules(t *testing.T) string {
	t.Helper()
	var rules struct {
		Groups []struct {
			Name  string           `yaml:"name"`
			Rules []map[string]any `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal(file(t, "../alerts.yaml"), &rules); err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			expr, _ := r["expr"].(string)
			r["expr"], _ = hurried(t, expr, hurry)
			if long, ok := r["for"].(string); ok {
				d, err := model.ParseDuration(long)
				if err != nil {
					t.Fatal(err)
				}
				r["for"] = (d / hurry).String()
			}
		}
	}
	text, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hurried.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The hurried rules are those of alerts.yaml but for the times, and the way back leads to the same.
func TestHurriedRulesAreTheSame(t *testing.T) {
	t.Parallel()
	inSeconds := map[string]float64{}
	for name, a := range alerts(t) {
		same, bounds := hurried(t, a.Expr, 1)
		faster, _ := hurried(t, a.Expr, hurry)
		back, _ := hurried(t, faster, 1./hurry)
		if back != same {
			t.Errorf("%s: %s became %s, and that %s", name, same, faster, back)
		}
		if strings.Contains(same, "[") && faster == same {
			t.Errorf("%s is not faster: %s", name, faster)
		}
		for _, b := range bounds {
			inSeconds[name] = b
		}
	}
	want := map[string]float64{"DocentWaitsLong": 60, "DocentLockStuck": 300, "DocentCacheStale": 60, "DocentDisconnected": 15}
	if !maps.Equal(inSeconds, want) {
		t.Errorf("the bounds in seconds are %v, want %v", inSeconds, want)
	}
}
