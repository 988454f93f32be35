package promdocent_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/internal/scenes"
	"github.com/docent-go/docent/observe/promdocent"
	"github.com/docent-go/docent/zktest"
)

// A registry that checks everything takes the collector, and exports what has happened.
func TestCollector(t *testing.T) {
	t.Parallel()
	metrics := promdocent.New(promdocent.WithLockName(observe.FirstElement))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics)
	var facts []scenes.Fact
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithTick(100*time.Millisecond), zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var err error
		if facts, err = scenes.Play(ctx, srv, metrics.Observer); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*dto.MetricFamily{}
	for _, f := range families {
		byName[f.GetName()] = f
	}
	for _, m := range observe.Metrics() {
		family := byName[m.PrometheusName()]
		if family == nil {
			t.Errorf("%s is not exported", m.PrometheusName())
			continue
		}
		delete(byName, m.PrometheusName())
		for _, f := range facts {
			if f.Metric == m.Name && total(family, f.Labels) != f.Count {
				t.Errorf("%s %v is %d, want %d", m.PrometheusName(), f.Labels, total(family, f.Labels), f.Count)
			}
		}
	}
	if len(byName) != 0 {
		t.Errorf("exported beyond the list: %v", byName)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) != 0 {
		t.Errorf("names or help against the rules of Prometheus: %v, %v", problems, err)
	}
	if n, err := testutil.GatherAndCount(registry, "docent_lock_holds"); err != nil || n < 8 {
		t.Errorf("%d series of holds for the locks by name, %v", n, err)
	}
}

// total sums the series of a family that have the labels, by their number of values for
// a histogram.
func total(family *dto.MetricFamily, labels map[string]string) int64 {
	var sum float64
	for _, m := range family.GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		same := true
		for k, v := range labels {
			same = same && has[strings.ReplaceAll(k, ".", "_")] == v
		}
		if same {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return int64(math.Round(sum))
}

// A loss is an increase of a counter that was 0 before, because the increase of a counter
// that was not there is none.
func TestTheFirstLossIsAnIncrease(t *testing.T) {
	t.Parallel()
	metrics := promdocent.New()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics)
	o := metrics.Observer()
	o.Lock(t.Context(), client.LockInfo{Recipe: "InterProcessMutex", Mode: "exclusive", Path: "/a"})
	for name, want := range map[string]int{
		"docent_lock_lost_total": 4, "docent_session_heartbeat_failures_total": 1, "docent_background_removals_total": 3,
		"docent_session_transitions_total": 5, "docent_session_state": 4, "docent_background_pending": 1,
	} {
		if n, err := testutil.GatherAndCount(registry, name); err != nil || n != want {
			t.Errorf("%s has %d series at the beginning, want %d; %v", name, n, want, err)
		}
	}
}
