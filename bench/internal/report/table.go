package report

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/docent-go/docent/bench/internal/run"
)

// none means what a peer does not have.
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
		if one.workload.Lone {
			b.WriteString(loneTable(&one))
		} else {
			b.WriteString(table(&one))
		}
		for _, r := range one.rows {
			if r.failed != "" {
				fmt.Fprintf(&b, "\n**%s failed:** `%s`\n", r.peer.Name, strings.ReplaceAll(strings.Join(strings.Fields(r.failed), " "), "`", "'"))
			}
		}
	}
	return b.String()
}

// conditions are those of results.
func conditions(r *run.Results) string {
	return Conditions(&r.Machine, fmt.Sprintf("%s. Medians of %d interleaved rounds of %s.", strings.Join(r.Versions, ", "), r.Rounds, r.Window))
}

// Conditions says where it was measured, and how.
func Conditions(m *run.Machine, how string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured %s, %.0f minutes: %d processors (%s), memory %s, Linux %s, data on %s, %s, Docent %s.\n",
		m.Begin.Format("2006-01-02 15:04 MST"), m.Minutes, m.Processors, m.Model, m.Memory, m.Kernel, m.Disk, m.Go, m.Revision)
	b.WriteString(how + "\n")
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
		line := []string{
			r.name(&floor), Number(r.rate), span(r), ratio(r.rate, floor.rate), ratio(r.rate, zkLock.rate), ratio(r.rate, curator.rate),
			Number(r.cycle[0]), Number(r.cycle[1]), Number(r.cycle[2]),
			Number(r.handOver[0]), Number(r.handOver[1]), Number(r.handOver[2]), ratio(r.handOver[0], floor.handOver[0]),
			hundredths(r.requests), hundredths(r.events), Number(r.server), Number(r.client), ratio(r.client, floor.client),
		}
		lines = append(lines, line)
	}
	return Markdown(lines)
}

func loneHead() []string {
	return []string{
		"peer", "crowd's cycles/s", "min-max", "x floor", "x Curator",
		"lone one's cycles/s", "x floor", "x Curator", "crowd's per lone one's", "lone cycle us p50",
		"requests", "events", "server us", "client us", "x floor",
	}
}

// loneTable is one workload in which a lone contender stands beside a crowd.
func loneTable(b *block) string {
	floor, curator := b.floor(), b.find("curator")
	lines := [][]string{loneHead()}
	for _, r := range b.rows {
		line := []string{
			r.name(&floor), Number(r.rate), span(r), ratio(r.rate, floor.rate), ratio(r.rate, curator.rate),
			Number(r.lone), ratio(r.lone, floor.lone), ratio(r.lone, curator.lone), quotient(r.rate, r.lone), Number(r.loneCycle),
			hundredths(r.requests), hundredths(r.events), Number(r.server), Number(r.client), ratio(r.client, floor.client),
		}
		lines = append(lines, line)
	}
	return Markdown(lines)
}

// name is what a row is called.
func (r *row) name(floor *row) string {
	name := r.peer.Name
	if name == floor.peer.Name {
		name += " (floor)"
	}
	if r.failed != "" {
		name += " FAILED"
	}
	return name
}

// Markdown makes a table of lines, the first of which is its head. The first column is
// text and the others are numbers.
func Markdown(lines [][]string) string {
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

// Number has three digits that count.
func Number(v float64) string {
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
	return Number(r.low) + "-" + Number(r.high)
}

// ratio is of medians.
func ratio(a, b float64) string {
	if b == 0 || math.IsNaN(a) || math.IsNaN(b) {
		return none
	}
	return fmt.Sprintf("%.2f", a/b)
}

// quotient is one rate by another, as a number of its own.
func quotient(a, b float64) string { return Number(a / b) }

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
