package sessions

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/docent-go/docent/bench/internal/report"
)

// prices computes the price of a ping and of a heartbeat. It takes the runs of the
// largest size that was measured idle and holding, and returns that size. Where
// requests are many, noise counts least.
func (r *Results) prices() (p Prices, size int) {
	p.Base = r.Base.ServerCPU
	idle := map[int]*Result{}
	for i, one := range r.All {
		n := one.Load.Sessions()
		switch {
		case one.Load.Name == idling:
			idle[n] = &r.All[i]
		case one.Load.Name == holding && idle[n] != nil && n > size:
			size = n
			e := one.Load.Expected(r.Policy)
			p.Ping = max(0, idle[n].ServerCPU-p.Base) / e.Pings
			p.Heartbeat = max(0, one.ServerCPU-p.Base-p.Ping*e.Pings) / e.Heartbeats
		}
	}
	return p, size
}

// Text is the results as Markdown, measured beside what the model says.
func Text(r *Results) string {
	var b strings.Builder
	b.WriteString(report.Conditions(&r.Machine, fmt.Sprintf("%s, %s. Sessions of %s, all of one process.",
		r.Version, r.Setting, r.timeout())))
	p, size := r.prices()
	lines := [][]string{{
		"sessions", "they", "requests/s", "model", "writes/s", "model", "watches", "model", "server CPU %", "model",
		"server KiB each", "client CPU us/s each", "client KiB each", "goroutines each", "heartbeat ms p50", "p99",
	}}
	for _, one := range r.All {
		lines = append(lines, r.line(&one, p))
	}
	b.WriteString("\n" + report.Markdown(lines))
	fmt.Fprintf(&b, "\nThe model's processor time has its prices from the runs with %d sessions: %.1f us for a ping, %.0f us for a heartbeat, and %.2f %% of a processor for a server without sessions.\n",
		size, 1e6*p.Ping, 1e6*p.Heartbeat, 100*p.Base)
	return b.String()
}

func (r *Results) timeout() time.Duration {
	if len(r.All) == 0 {
		return 0
	}
	return r.All[0].Load.Timeout
}

func (r *Results) line(one *Result, p Prices) []string {
	n := float64(one.Load.Sessions())
	e := one.Load.Expected(r.Policy)
	const kib, percent, micro = 1 << 10, 100, 1e6
	beats := []string{"-", "-"}
	if one.Beats.Number > 0 {
		beats = []string{millis(one.Beats.P50), millis(one.Beats.P99)}
	}
	return append([]string{
		fmt.Sprint(one.Load.Sessions()), one.Load.Name,
		report.Number(one.Requests), report.Number(e.Requests()),
		report.Number(one.Writes), report.Number(e.Heartbeats),
		fmt.Sprint(one.Watches), fmt.Sprint(e.Watches),
		report.Number(percent * one.ServerCPU), report.Number(percent * p.CPU(e)),
		report.Number(float64(one.ServerHeap-r.Base.ServerHeap) / n / kib), report.Number(micro * one.ClientCPU / n),
		report.Number(float64(one.Memory.Resident) / n / kib), report.Number(float64(one.Memory.Goroutines) / n),
	}, beats...)
}

func millis(d time.Duration) string { return report.Number(d.Seconds() * 1e3) }

// Write writes the results to a file, for Read.
func Write(r *Results, path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644) //nolint:gosec // holds nothing secret
}

// Read reads what Write wrote.
func Read(path string) (*Results, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r Results
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &r, nil
}
