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

// report is what was found of a target: lines of three kinds.
//
//	file SUM PATH
//	mutants N
//	survivor NAME <tab> REASON
type report struct {
	sums      map[string]string // by file
	all       int
	survivors map[string]string // reasons by name
}

func (t target) path() string {
	return filepath.Join("internal", "mutants", "survivors", t.name+".txt")
}

func readReport(t target) (report, error) {
	r := report{sums: map[string]string{}, survivors: map[string]string{}}
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
	for _, name := range slices.Sorted(maps.Keys(r.survivors)) {
		fmt.Fprintf(&b, "survivor %s\t%s\n", name, r.survivors[name])
	}
	if err := os.MkdirAll(filepath.Dir(t.path()), 0o750); err != nil {
		return err
	}
	return os.WriteFile(t.path(), []byte(b.String()), 0o600)
}
