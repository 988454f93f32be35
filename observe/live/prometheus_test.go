package live_test

import (
	"bufio"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/internal/scenes"
)

// interval is how often Prometheus scrapes.
const interval = 250 * time.Millisecond

// prom is a Prometheus server.
type prom struct {
	*testing.T

	address string
}

// startPrometheus starts a server that scrapes the target and has our rules.
func startPrometheus(t *testing.T, target string) *prom {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatalf("%v: install Debian's package prometheus", err)
	}
	rules, err := filepath.Abs("../alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: %[1]v, scrape_timeout: %[1]v, evaluation_interval: %[1]v}\nrule_files: [%[2]q]\n"+
		"scrape_configs: [{job_name: shop, static_configs: [{targets: [%[3]q]}]}]\n", interval, rules, target)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0", "--log.format=json")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	ready := make(chan string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		listening := regexp.MustCompile(`"address":"(127\.0\.0\.1:[1-9][0-9]*)"`)
		var address string
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			line := lines.Text()
			log.WriteString(line + "\n")
			if found := listening.FindStringSubmatch(line); found != nil {
				address = found[1]
			}
			if strings.Contains(line, "Server is ready to receive web requests") {
				ready <- address
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-done
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	select {
	case address := <-ready:
		return &prom{t, address}
	case <-done:
	case <-time.After(20 * time.Second):
		_ = cmd.Process.Kill()
	}
	t.Fatal("Prometheus is not ready")
	return nil
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
	var answer struct{ Data struct{ Result []sample } }
	get(p.T, "http://"+p.address+"/api/v1/query?query="+url.QueryEscape(expr), &answer)
	return answer.Data.Result
}

// await asks until the answer will do.
func (p *prom) await(what string, ok func() bool) {
	p.Helper()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for !ok() {
		select {
		case <-look.C:
		case <-limit.C:
			p.Fatalf("%s did not come in 20 s", what)
		}
	}
}

// scraped waits until a scrape has begun after all that has happened so far, and after
// what hooks are told a moment after the close of their client.
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
	p := startPrometheus(t, target)
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
		return len(p.query(`ALERTS{alertname="DocentLockLost", alertstate="firing", recipe="InterProcessMutex", end="session", job="shop"}`)) == 1
	})
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	get(t, "http://"+p.address+"/api/v1/rules", &answer)
	rules := 0
	for _, g := range answer.Data.Groups {
		for _, r := range g.Rules {
			rules++
			if r.Health != "ok" {
				t.Errorf("rule %s: %s %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	if want := len(alerts(t)); rules != want {
		t.Errorf("Prometheus has %d rules, want %d", rules, want)
	}
}
