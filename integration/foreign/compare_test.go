//go:build foreign

package foreign_test

import (
	"fmt"
	"slices"
	"strings"
)

// differences says what a program has seen on one server and not on the other, step by
// step. A step that failed on both sides in the same way is no difference.
func differences(want, got *report) []string {
	var out []string
	names := func(r *report) []string {
		var all []string
		for _, s := range r.steps {
			all = append(all, s.name)
		}
		return all
	}
	if a, b := names(want), names(got); !slices.Equal(a, b) {
		out = append(out, fmt.Sprintf("steps are %v on one server and %v on the other", a, b))
	}
	for _, w := range want.steps {
		i := slices.IndexFunc(got.steps, func(s *step) bool { return s.name == w.name })
		if i < 0 {
			continue
		}
		g := got.steps[i]
		if mask(w.why) != mask(g.why) {
			out = append(out, fmt.Sprintf("%s: ended with %q on one server and with %q on the other", w.name, w.why, g.why))
		}
		if d := diff(w.seen, g.seen); d != "" {
			out = append(out, fmt.Sprintf("%s (- ZooKeeper, + zktest):\n%s", w.name, d))
		}
	}
	return out
}

// diff lists the lines that only one side has, in the order of the sides. The
// order of the steps is part of what is compared, so a line in another place is a
// difference too.
func diff(want, got []string) string {
	if slices.Equal(want, got) {
		return ""
	}
	var b strings.Builder
	i, j := 0, 0
	for i < len(want) || j < len(got) {
		switch {
		case i < len(want) && j < len(got) && want[i] == got[j]:
			i, j = i+1, j+1
		case j >= len(got) || (i < len(want) && !slices.Contains(got[j:], want[i])):
			fmt.Fprintf(&b, "  - %s\n", want[i])
			i++
		default:
			fmt.Fprintf(&b, "  + %s\n", got[j])
			j++
		}
	}
	return b.String()
}
