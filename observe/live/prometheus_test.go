package live_test

import (
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/internal/scenes"
	"github.com/docent-go/docent/observe/live/internal/promserver"
)

// interval is how often Prometheus scrapes.
const interval = 250 * time.Millisecond

// prom is a Prometheus server.
type prom struct {
	*testing.T

	server *promserver.Server
}

// startPrometheus starts a server with the rules of a file, and with the address of each target by its
// instance.
func startPrometheus(t *testing.T, targets map[string]string, every time.Duration, rules string) *prom {
	t.Helper()
	server, err := promserver.Start(t.Context(), promserver.Config{
		Dir: t.TempDir(), Job: "shop", Targets: targets, Interval: every, Rules: rules,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if log := server.Close(); t.Failed() {
			t.Log(log)
		}
	})
	return &prom{t, server}
}

// sample is a sample of an instant vector.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

func (s sample) number(t *testing.T) float64 {
	t.Helper()
	text, _ := s.Value[1].(string)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (p *prom) query(expr string) []sample {
	p.Helper()
	var result []sample
	if err := p.server.Query(p.Context(), "query", url.Values{"query": {expr}}, &result); err != nil {
		p.Fatal(err)
	}
	return result
}

// await asks until the answer will do.
func (p *prom) await(what string, ok func() bool) {
	p.Helper()
	p.awaitFor(20*time.Second, what, ok)
}

// awaitFor is await with another patience.
func (p *prom) awaitFor(patience time.Duration, what string, ok func() bool) {
	p.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-limit.C:
			p.Fatalf("%s did not come in %v", what, patience)
		}
	}
}

// scraped waits until a scrape has begun after all that has happened so far. That
// includes what hooks are told a moment after the close of their client.
func (p *prom) scraped() {
	p.Helper()
	from := float64(time.Now().Add(interval).UnixMilli()) / 1000
	p.await("a scrape", func() bool {
		last := p.query("timestamp(up)")
		return len(last) == 1 && last[0].number(p.T) > from
	})
}

// selector is a fact as a query.
func selector(f scenes.Fact) string {
	for _, m := range observe.Metrics() {
		if m.Name != f.Metric {
			continue
		}
		name := m.PrometheusName()
		if m.Kind == observe.Histogram {
			name += "_count"
		}
		var labels []string
		for k, v := range f.Labels {
			labels = append(labels, fmt.Sprintf("%s=%q", strings.ReplaceAll(k, ".", "_"), v))
		}
		slices.Sort(labels)
		return fmt.Sprintf("sum(%s{%s}) or vector(0)", name, strings.Join(labels, ","))
	}
	return f.Metric + " is no metric"
}

// Prometheus scrapes a process, and answers what has happened there. Every query of the
// dashboard has an answer, the rules work, and the alert of a lost lock fires.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	target := startObserved(t)
	rules, err := filepath.Abs("../alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := startPrometheus(t, map[string]string{"": target}, interval, rules)
	const plays = 2 // rates need what was there before
	var facts []scenes.Fact
	for range plays {
		get(t, "http://"+target+"/play", &facts)
		p.scraped()
	}
	if len(facts) < 20 {
		t.Errorf("%d facts", len(facts))
	}
	for _, f := range facts {
		got := p.query(selector(f))
		if len(got) != 1 || math.Abs(got[0].number(t)-float64(f.Count*plays)) > 0.1 {
			t.Errorf("%s: %v, want %d", selector(f), got, f.Count*plays)
		}
	}
	for title, exprs := range dashboard(t) {
		for _, expr := range exprs {
			if len(p.query(expr)) == 0 {
				t.Errorf("panel %q: no answer to %s", title, expr)
			}
		}
	}
	p.await("the alert", func() bool {
		return len(p.query(`ALERTS{alertname="DocentLockLost", alertstate="firing", docent_lock_recipe="InterProcessMutex", docent_lock_end="session", job="shop"}`)) == 1
	})
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := p.server.Get(t.Context(), "rules", nil, &answer); err != nil {
		t.Fatal(err)
	}
	loaded := 0
	for _, g := range answer.Data.Groups {
		for _, r := range g.Rules {
			loaded++
			if r.Health != "ok" {
				t.Errorf("rule %s: %s %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	if want := len(alerts(t)); loaded != want {
		t.Errorf("Prometheus has %d rules, want %d", loaded, want)
	}
}
