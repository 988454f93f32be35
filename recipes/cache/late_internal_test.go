package cache

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Every sequence of events, compared with what the history of them says: changes are late if they
// have waited for longer than they may since the first of them, or since the last state that was
// found behind it.
func TestExploreLateness(t *testing.T) {
	t.Parallel()
	events := []string{"settled", "changed", "found", "passed", "looked", "half a second", "a slow round", "a quick round"}
	var walk func(l lateness, now time.Time, history []string, long int) int
	walk = func(l lateness, now time.Time, history []string, long int) (n int) {
		if want := lateBy(history); (l.state == late) != want {
			t.Fatalf("after %q it is late: %v", history, l.state == late)
		}
		if long == 0 {
			return 1
		}
		for _, e := range events {
			next, at := l, now
			switch e {
			case "settled":
				next.settled()
			case "changed":
				next.changed(now)
			case "found":
				if l.state == calm {
					continue // nothing newer is known of
				}
				next.found(now)
			case "passed":
				next.passed()
			case "looked":
				next.looked(now)
			case "half a second":
				at = now.Add(time.Second / 2)
			case "a slow round":
				next.took = time.Second / 2
			case "a quick round":
				next.took = 0
			}
			n += walk(next, at, append(slices.Clone(history), e), long-1)
		}
		return n
	}
	t.Log(fmt.Sprint(walk(lateness{}, time.Time{}, nil, 7), " sequences"))
}

// lateBy is what the history says of the end.
func lateBy(history []string) bool {
	waits, isLate := -1, false // half seconds; -1 if nothing waits
	patience := 2
	for _, e := range history {
		switch e {
		case "settled":
			waits, isLate = -1, false
		case "changed":
			waits = max(waits, 0)
		case "found":
			waits, isLate = 0, false
		case "passed":
			waits, isLate = max(waits, 0), true
		case "looked":
			isLate = isLate || waits >= patience
		case "half a second":
			if waits >= 0 {
				waits++
			}
		case "a slow round":
			patience = 3
		case "a quick round":
			patience = 2
		}
	}
	return isLate
}
