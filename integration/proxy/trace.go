package proxy

import (
	"fmt"
	"strings"
	"time"
)

// traceLines is how many events a failed test prints.
const traceLines = 400

// trace keeps the last events as text.
type trace struct {
	start time.Time
	lines []string
	next  int
	lost  int
}

func newTrace() trace { return trace{start: time.Now()} }

func (t *trace) add(format string, args ...any) {
	line := fmt.Sprintf("%10.6f ", time.Since(t.start).Seconds()) + fmt.Sprintf(format, args...)
	if len(t.lines) < traceLines {
		t.lines = append(t.lines, line)
		return
	}
	t.lines[t.next] = line
	t.next = (t.next + 1) % traceLines
	t.lost++
}

func (t *trace) text() string {
	var b strings.Builder
	if t.lost > 0 {
		fmt.Fprintf(&b, "(%d earlier lines left out)\n", t.lost)
	}
	for i := range t.lines {
		b.WriteString(t.lines[(t.next+i)%len(t.lines)])
		b.WriteByte('\n')
	}
	return b.String()
}
