package live_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/promdocent"
)

// The page says how many series a lock costs.
func TestSeriesOfALock(t *testing.T) {
	t.Parallel()
	collector := promdocent.New(promdocent.WithLockName(observe.FirstElement))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	o := collector.Observer()
	count := func() (n int) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		for _, f := range families {
			if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
				t.Fatal(err)
			}
		}
		for line := range strings.Lines(text.String()) {
			if !strings.HasPrefix(line, "#") {
				n++
			}
		}
		return n
	}
	acquire := func(outcome client.AcquireOutcome) client.LockHooks {
		_, hooks := o.Lock(t.Context(), client.LockInfo{Recipe: "InterProcessMutex", Mode: "exclusive", Path: "/orders/4711"})
		hooks.Queued(client.QueuePlace{})
		hooks.Acquired(client.AcquireResult{Outcome: outcome})
		return hooks
	}
	before := count()
	hooks := acquire(client.AcquireDone)
	hooks.Held(t.Context(), client.HoldInfo{})
	hooks.Ended(client.HoldResult{})
	usual := count() - before
	acquire(client.AcquireBusy)
	other := count() - before - usual
	page := strings.Join(strings.Fields(string(file(t, "../../docs/observability.md"))), " ")
	for _, want := range []string{fmt.Sprintf("A name costs %d series", usual), fmt.Sprintf("costs %d more", other)} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/observability.md does not say %q", want)
		}
	}
}
