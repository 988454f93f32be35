package caches

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/docent-go/docent/bench/internal/report"
)

const (
	mib = 1 << 20
	kib = 1 << 10
)

// Text is the results as Markdown.
func Text(r *Results) string {
	var b strings.Builder
	b.WriteString(report.Conditions(&r.Machine, fmt.Sprintf(
		"%s, one server, no fsync. %s. The tree has %d nodes: %d directories, and %d nodes of %d bytes in each. Its paths and data are %s MiB.",
		r.Version, r.Curator, r.Shape.Nodes(), r.Shape.Directories, r.Shape.In, r.Shape.Value, report.Number(float64(r.Raw)/mib))))
	lines := [][]string{{
		"", "first load s", "fastest load s", "x loop", "peak MiB", "heap MiB", "bytes per node", "of the bound %", "requests to load",
		"for a change", "to reconnect", "KiB",
	}}
	basis := r.best(loop)
	for _, one := range r.All {
		lines = append(lines, r.line(&one, basis))
	}
	b.WriteString("\n" + report.Markdown(lines))
	for _, one := range r.All {
		if one.Missing != 0 {
			fmt.Fprintf(&b, "\n%s said that all is read when it had %d nodes; its times and memory are of that.\n", one.Kind.Title, r.Shape.Nodes()-one.Missing)
		}
	}
	fmt.Fprintf(&b, "\nA loop learns of no change. The bound is %g times the bytes of paths and data, and %d bytes for each node: %s MiB.\n",
		factor, perNode, report.Number(r.Shape.Bound(r.Raw)/mib))
	return b.String()
}

// best is the fastest load of the kind of this name, 0 if it was not measured.
func (r *Results) best(name string) time.Duration {
	for _, one := range r.All {
		if one.Kind.Name == name {
			return one.Best()
		}
	}
	return 0
}

func (r *Results) line(one *Result, basis time.Duration) []string {
	const percent = 100
	heap := float64(one.Heap)
	line := []string{
		one.Kind.Title, report.Number(one.Loads[0].Seconds()), report.Number(one.Best().Seconds()),
		report.Number(basis.Seconds() / one.Best().Seconds()), report.Number(float64(one.Peak) / mib), report.Number(heap / mib),
		report.Number(heap / float64(r.Shape.Nodes())), report.Number(percent * heap / r.Shape.Bound(r.Raw)), fmt.Sprint(one.Load.Requests),
	}
	if !one.Kind.Follows {
		return append(line, "-", "-", "-")
	}
	return append(line, fmt.Sprint(one.Change.Requests), fmt.Sprint(one.Reconnect.Requests), report.Number(float64(one.Reconnect.Bytes)/kib))
}

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
