package report

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/docent-go/docent/bench/internal/run"
)

// none stands for what a peer does not have.
const none = "-"

// Text is everything in tables of Markdown, padded for a terminal.
func Text(r *run.Results) string {
	var b strings.Builder
	b.WriteString(conditions(r))
	setting := ""
	for _, one := range blocks(r) {
		if one.setting.Name != setting {
			setting = one.setting.Name
			fmt.Fprintf(&b, "\n## %s\n", capital(one.setting.Title))
		}
		fmt.Fprintf(&b, "\n### %s: %s\n\n", setting, one.workload.Title)
		b.WriteString(table(&one))
		for _, r := range one.rows {
			if r.failed != "" {
				fmt.Fprintf(&b, "\n**%s failed:** `%s`\n", r.peer.Name, strings.ReplaceAll(strings.Join(strings.Fields(r.failed), " "), "`", "'"))
			}
		}
	}
	return b.String()
}

// conditions says where and how it was measured.
func conditions(r *run.Results) string {
	var b strings.Builder
	m := &r.Machine
	fmt.Fprintf(&b, "Measured %s, %.0f minutes: %d processors (%s), memory %s, Linux %s, data on %s, %s, Docent %s.\n",
		m.Begin.Format("2006-01-02 15:04 MST"), m.Minutes, m.Processors, m.Model, m.Memory, m.Kernel, m.Disk, m.Go, m.Revision)
	fmt.Fprintf(&b, "%s. Medians of %d interleaved rounds of %s.\n", strings.Join(r.Versions, ", "), r.Rounds, r.Window)
	const loaded = 0.05
	if m.Others > loaded {
		fmt.Fprintf(&b, "**The machine was loaded:** other programs had %.0f %% of its processors. Trust the ratios a little and the times not at all.\n", 100*m.Others)
	}
	return b.String()
}

func head() []string {
	return []string{
		"peer", "cycles/s", "min-max", "x floor", "x zk.Lock", "x Curator",
		"cycle us p50", "p90", "p99", "hand-over us p50", "p90", "p99", "x floor",
		"requests", "events", "server us", "client us", "x floor",
	}
}

// table is one workload in one setting.
func table(b *block) string {
	floor, zkLock, curator := b.floor(), b.find("zklock"), b.find("curator")
	lines := [][]string{head()}
	for _, r := range b.rows {
		name := r.peer.Name
		if name == floor.peer.Name {
			name += " (floor)"
		}
		if r.failed != "" {
			name += " FAILED"
		}
		line := []string{
			name, number(r.rate), span(r), ratio(r.rate, floor.rate), ratio(r.rate, zkLock.rate), ratio(r.rate, curator.rate),
			number(r.cycle[0]), number(r.cycle[1]), number(r.cycle[2]),
			number(r.handOver[0]), number(r.handOver[1]), number(r.handOver[2]), ratio(r.handOver[0], floor.handOver[0]),
			hundredths(r.requests), hundredths(r.events), number(r.server), number(r.client), ratio(r.client, floor.client),
		}
		lines = append(lines, line)
	}
	return markdown(lines)
}

// markdown makes a table of lines, the first of which is its head. The first column is
// text and the others are numbers.
func markdown(lines [][]string) string {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for n, line := range lines {
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString("| " + cell + pad)
			} else {
				b.WriteString(" | " + pad + cell)
			}
		}
		b.WriteString(" |\n")
		if n > 0 {
			continue
		}
		for i, w := range widths {
			if i == 0 {
				b.WriteString("|" + strings.Repeat("-", w+2))
			} else {
				b.WriteString("|" + strings.Repeat("-", w+1) + ":")
			}
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// number has three digits that count.
func number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return none
	case v >= 99.95 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func hundredths(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return none
	}
	return fmt.Sprintf("%.2f", max(v, 0))
}

func span(r row) string {
	if math.IsNaN(r.low) {
		return none
	}
	return number(r.low) + "-" + number(r.high)
}

// ratio is of medians.
func ratio(a, b float64) string {
	if b == 0 || math.IsNaN(a) || math.IsNaN(b) {
		return none
	}
	return fmt.Sprintf("%.2f", a/b)
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
