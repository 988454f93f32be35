package main

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// report is what was found of a target: lines of four kinds.
//
//	file SUM PATH
//	mutants N
//	hang NAME <tab> REASON
//	survivor NAME <tab> REASON
//
// A hang counts as killed. Its reason says why the program does not end.
type report struct {
	sums      map[string]string // by file
	all       int
	hangs     map[string]string // reasons by name
	survivors map[string]string // the same
}

// killed is how many mutants are.
func (r report) killed() int { return r.all - len(r.survivors) }

// enough reports whether enough are killed.
func (r report) enough() bool { return 100*r.killed() >= least*r.all }

// String is the figures.
func (r report) String() string {
	text := fmt.Sprintf("killed %d of %d (%d %%)", r.killed(), r.all, 100*r.killed()/max(r.all, 1))
	if n := len(r.hangs); n > 0 {
		text += fmt.Sprintf(", %d of these hang", n)
	}
	return text
}

func (t target) path() string {
	return filepath.Join("internal", "mutants", "survivors", t.name+".txt")
}

func readReport(t target) (report, error) {
	r := report{sums: map[string]string{}, hangs: map[string]string{}, survivors: map[string]string{}}
	text, err := os.ReadFile(t.path())
	if err != nil {
		return r, fmt.Errorf("%w; go run ./internal/mutants -targets %s -write makes it", err, t.name)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		switch kind {
		case "file":
			value, path, _ := strings.Cut(rest, " ")
			r.sums[path] = value
		case "mutants":
			if r.all, err = strconv.Atoi(rest); err != nil {
				return r, fmt.Errorf("%s: %w", t.path(), err)
			}
		case "hang":
			name, reason, _ := strings.Cut(rest, "\t")
			r.hangs[name] = reason
		case "survivor":
			name, reason, _ := strings.Cut(rest, "\t")
			r.survivors[name] = reason
		default:
			return r, fmt.Errorf("%s: a line of no kind: %q", t.path(), lines.Text())
		}
	}
	return r, lines.Err()
}

func (r report) write(t target) error {
	var b strings.Builder
	for _, f := range slices.Sorted(maps.Keys(r.sums)) {
		fmt.Fprintf(&b, "file %s %s\n", r.sums[f], f)
	}
	fmt.Fprintf(&b, "mutants %d\n", r.all)
	for _, name := range slices.Sorted(maps.Keys(r.hangs)) {
		fmt.Fprintf(&b, "hang %s\t%s\n", name, r.hangs[name])
	}
	for _, name := range slices.Sorted(maps.Keys(r.survivors)) {
		fmt.Fprintf(&b, "survivor %s\t%s\n", name, r.survivors[name])
	}
	if err := os.MkdirAll(filepath.Dir(t.path()), 0o750); err != nil {
		return err
	}
	return os.WriteFile(t.path(), []byte(b.String()), 0o600)
}

// least is the share of mutants that have to be killed, in percent.
const least = 90
