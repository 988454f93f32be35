package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// figuresOf are the lines of a table, each as its cells.
type figuresOf [][]string

func cellsOf(line string) []string {
	cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// measured are the tables of a page by the anchors of the headings above them.
func measured(page string) map[string]figuresOf {
	tables := map[string]figuresOf{}
	anchor := ""
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "#"):
			anchor = anchorOf(line)
		case strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|-"):
			tables[anchor] = append(tables[anchor], cellsOf(line))
		}
	}
	return tables
}

// of is the cell of a peer in the column at the index, "" if there is none.
func (f figuresOf) of(peer string, column int) string {
	for _, line := range f {
		if name, _, _ := strings.Cut(line[0], " "); name == peer && column > 0 && column < len(line) {
			return line[column]
		}
	}
	return ""
}

// column is the index of a column of docs/performance.md in a measured table.
func (f figuresOf) column(name string) int {
	handOver := slices.Index(f[0], "hand-over us p50")
	switch {
	case name == "hand-over us":
		return handOver
	case name == "hand-over x floor" && handOver > 0:
		return handOver + slices.Index(f[0][handOver:], "x floor")
	}
	return slices.Index(f[0], name)
}

// figure is what the column of docs/performance.md says of the measured table.
func (f figuresOf) figure(name string) string {
	peer, quotient := strings.CutPrefix(name, "x ")
	if !quotient || f.column(name) > 0 {
		return f.of("docent", f.column(name))
	}
	rate := f.column("cycles/s")
	ours, err := strconv.ParseFloat(f.of("docent", rate), 64)
	theirs, errTheirs := strconv.ParseFloat(f.of(peer, rate), 64)
	if err != nil || errTheirs != nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", ours/theirs)
}

// wrongFigures returns what a page says otherwise than the measured tables to which its
// rows lead, and how many figures it has.
func wrongFigures(t *testing.T, page string) (wrong []string, all int) {
	t.Helper()
	link := regexp.MustCompile(`\]\((\.\./bench/results/[a-z-]+\.md)#([^)]+)\)$`)
	var head []string
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "|") {
			head = nil
			continue
		}
		cells := cellsOf(line)
		if head == nil {
			head = cells
		}
		m := link.FindStringSubmatch(cells[0])
		if m == nil {
			continue
		}
		table := measured(read(t, filepath.FromSlash(m[1])))[m[2]]
		if len(table) == 0 {
			wrong = append(wrong, m[1]+" has no table "+m[2])
			continue
		}
		for i, name := range head[1:] {
			all++
			if want := table.figure(name); cells[i+1] != want {
				wrong = append(wrong, fmt.Sprintf("%s, %s: %s; %s says %q", cells[0], name, cells[i+1], m[1], want))
			}
		}
	}
	return wrong, all
}

// The figures of docs/performance.md are those of the tables in bench/results.
func TestPerformance(t *testing.T) {
	t.Parallel()
	wrong, all := wrongFigures(t, read(t, "performance.md"))
	for _, one := range wrong {
		t.Error(one)
	}
	if all == 0 {
		t.Error("the page has no figures")
	}
	t.Logf("%d figures", all)
}

// A figure that is not the measured one is noticed, in every column.
func TestWrongPerformance(t *testing.T) {
	t.Parallel()
	const row = "| [a row](../bench/results/one-process.md#one-fsync-one-lock-8-contenders-one-session) |"
	for _, column := range []string{
		"cycles/s", "x floor", "x zk.Lock", "x Curator", "x etcd", "x redsync", "hand-over us", "hand-over x floor", "no such column",
	} {
		page := "| | " + column + " |\n|---|--:|\n" + row + " 12345 |\n"
		if wrong, all := wrongFigures(t, page); len(wrong) != 1 || all != 1 {
			t.Errorf("%s: %q", column, wrong)
		}
	}
	if wrong, _ := wrongFigures(t, "| | cycles/s |\n|---|--:|\n| [a row](../bench/results/method.md#nothing) | 1 |\n"); len(wrong) != 1 {
		t.Errorf("a table that is not there: %q", wrong)
	}
}
