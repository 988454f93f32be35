package observe_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/internal/scenes"
	"github.com/docent-go/docent/zktest"
)

// ledger is a sink that keeps the sum of every series, and the number of values of a
// histogram.
type ledger struct {
	mu     sync.Mutex
	series []*entry
	asked  []func()
}

type entry struct {
	observe.Metric

	labels map[string]string
	sum    int64
	least  int64 // the sum was never less
	most   int64 // the sum was never more
}

func (l *ledger) open(m observe.Metric, values []string) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &entry{Metric: m, labels: map[string]string{}}
	for i, v := range values {
		e.labels[m.Labels[i]] = v
	}
	l.series = append(l.series, e)
	return e
}

func (l *ledger) add(e *entry, n int64) {
	l.mu.Lock()
	asked := slices.Clone(l.asked)
	l.mu.Unlock()
	for _, ask := range asked { // as often as anything happens
		ask()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.sum += n
	e.least, e.most = min(e.least, e.sum), max(e.most, e.sum)
}

func (l *ledger) Histogram(m observe.Metric, values ...string) func(context.Context, float64) {
	e := l.open(m, values)
	return func(context.Context, float64) { l.add(e, 1) }
}

func (l *ledger) Sum(m observe.Metric, values ...string) func(context.Context, int64) {
	e := l.open(m, values)
	return func(_ context.Context, n int64) { l.add(e, n) }
}

// Ask keeps the newest value, in nanoseconds.
func (l *ledger) Ask(m observe.Metric, value func() float64, values ...string) {
	e := l.open(m, values)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, func() {
		now := int64(value() * 1e9)
		l.mu.Lock()
		defer l.mu.Unlock()
		e.sum, e.least, e.most = now, min(e.least, now), max(e.most, now)
	})
}

// total is the sum over all series of the metric that have the labels.
func (l *ledger) total(metric string, labels map[string]string) int64 {
	var sum int64
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.series {
		if e.Name != metric {
			continue
		}
		same := true
		for k, v := range labels {
			same = same && e.labels[k] == v
		}
		if same {
			sum += e.sum
		}
	}
	return sum
}

// played is the ledger after all scenes.
func played(t *testing.T, name observe.LockName) (*ledger, []scenes.Fact) {
	t.Helper()
	l := &ledger{}
	var facts []scenes.Fact
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithTick(100*time.Millisecond), zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var err error
		facts, err = scenes.Play(ctx, srv, observe.NewMeasures(l, name).Observer)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	})
	return l, facts
}

// Every metric says what has happened, and no sum that shrinks goes below 0.
func TestMeasures(t *testing.T) {
	t.Parallel()
	l, facts := played(t, nil)
	for _, f := range facts {
		if got := l.total(f.Metric, f.Labels); got != f.Count {
			t.Errorf("%s %v is %d, want %d", f.Metric, f.Labels, got, f.Count)
		}
	}
	told := map[string]bool{}
	for _, e := range l.series {
		told[e.Name] = told[e.Name] || e.most > 0
		if e.least < 0 {
			t.Errorf("%s %v fell to %d", e.Name, e.labels, e.least)
		}
		if e.Name == observe.Holds && e.most > 1 && e.labels["docent.lock.recipe"] != "InterProcessMutex" {
			t.Errorf("%v: %d holds at once, and there is no second holder", e.labels, e.most)
		}
	}
	for _, m := range observe.Metrics() {
		if !told[m.Name] {
			t.Errorf("nothing was ever told of %s", m.Name)
		}
	}
}

// No label has a path, the name of a node, a session or the text of an error, and no two
// series are the same.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	word := regexp.MustCompile(`^[A-Za-z_]+2?$`)
	seen := map[string]bool{}
	l, _ := played(t, nil)
	for _, e := range l.series {
		if id := fmt.Sprint(e.Name, e.labels); seen[id] {
			t.Errorf("the sink was asked twice for %s", id)
		} else {
			seen[id] = true
		}
		for label, value := range e.labels {
			switch {
			case label == "docent.lock.name" && value != "":
				t.Errorf("%s has a lock %q by default", e.Name, value)
			case label == "server.address" && value == "zk:2181", value == "":
			case !word.MatchString(value):
				t.Errorf("%s: the label %s=%q may be unbounded", e.Name, label, value)
			}
		}
	}
	if n := len(l.series); n > 150 {
		t.Errorf("%d series without names of locks", n)
	}
}

func TestMetricsAreWellFormed(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, m := range observe.Metrics() {
		if names[m.Name] || m.Help == "" || !strings.HasSuffix(m.Help, ".") {
			t.Errorf("%s is there twice, or has no sentence of help: %q", m.Name, m.Help)
		}
		names[m.Name] = true
		if (m.Kind == observe.Histogram) != (len(m.Buckets) > 0) {
			t.Errorf("%s: %d buckets", m.Name, len(m.Buckets))
		}
		for i := 1; i < len(m.Buckets); i++ {
			if m.Buckets[i] <= m.Buckets[i-1] {
				t.Errorf("%s: the buckets %v do not grow", m.Name, m.Buckets)
			}
		}
		if m.Unit != "s" && m.Unit != "1" && !regexp.MustCompile(`^\{[a-z]+\}$`).MatchString(m.Unit) {
			t.Errorf("%s: unit %q", m.Name, m.Unit)
		}
		for _, label := range append(m.PrometheusLabels(), m.PrometheusName()) {
			if !regexp.MustCompile(`^[a-z_]+$`).MatchString(label) {
				t.Errorf("%s: %q is no name in Prometheus", m.Name, label)
			}
		}
	}
}
