package observe_test

import (
	"fmt"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
)

func TestLockNames(t *testing.T) {
	t.Parallel()
	listed := observe.Listed("/a/b", "/c")
	for _, tt := range []struct {
		lock                     client.LockInfo
		none, first, fromTheList string
		below                    string
	}{
		{client.LockInfo{Path: "/a/b"}, "", "a", "/a/b", "/a/b"},
		{client.LockInfo{Path: "/c"}, "", "c", "/c", observe.Other},
		{client.LockInfo{Path: "/a/4711"}, "", "a", observe.Other, "/a/4711"},
		{client.LockInfo{Path: "/a/b/4711"}, "", "a", observe.Other, "/a/b"},
		{client.LockInfo{Path: "/deep/down/here/1"}, "", "deep", observe.Other, "/deep/down/here"},
		{client.LockInfo{Path: "/deep/downer/1"}, "", "deep", observe.Other, observe.Other},
		{client.LockInfo{Path: "/a"}, "", "a", observe.Other, observe.Other},
		{client.LockInfo{Path: "/x+y/4711"}, "", "x+y", observe.Other, observe.Other},
		{client.LockInfo{Path: "/a+/b/2", Mode: "multi"}, "", "a", observe.Other, observe.Other},
		{client.LockInfo{Path: "/a/b/1+/a/c", Mode: "multi"}, "", "a", observe.Other, "/a/b"},
	} {
		if got := observe.NoName(tt.lock); got != tt.none {
			t.Errorf("NoName(%q) = %q", tt.lock.Path, got)
		}
		if got := observe.FirstElement(tt.lock); got != tt.first {
			t.Errorf("FirstElement(%q) = %q, want %q", tt.lock.Path, got, tt.first)
		}
		if got := observe.Path(tt.lock); got != tt.lock.Path {
			t.Errorf("Path(%q) = %q", tt.lock.Path, got)
		}
		if got := observe.Below("/a", "/deep/down/")(tt.lock); got != tt.below {
			t.Errorf("Below: %q is named %q, want %q", tt.lock.Path, got, tt.below)
		}
		if got := listed(tt.lock); got != tt.fromTheList {
			t.Errorf("Listed: %q is named %q, want %q", tt.lock.Path, got, tt.fromTheList)
		}
	}
}

// A program that names every lock after its path, or has any number of servers, gets a
// limited number of series.
func TestNamesAreLimited(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	o := observe.NewMeasures(l, func(lock client.LockInfo) string { return lock.Path }).Observer()
	const locks = 1000
	for i := range 2 * locks { // each name twice
		path := fmt.Sprintf("/orders/%d", i%locks)
		_, hooks := o.Lock(t.Context(), client.LockInfo{Recipe: "InterProcessMutex", Mode: "exclusive", Path: path})
		hooks.Acquired(client.AcquireResult{Outcome: client.AcquireBusy})
		o.Dial(client.DialInfo{Server: fmt.Sprintf("10.0.%d.%d:2181", i%locks/100, i%100)})
	}
	for label, metric := range map[string]string{"docent.lock.name": observe.Waiters, "server.address": observe.DialDuration} {
		values := map[string]bool{}
		for _, e := range l.series {
			if e.Name == metric {
				values[e.labels[label]] = true
			}
		}
		if len(values) != 101 || !values[observe.Other] {
			t.Errorf("the label %s has %d values", label, len(values))
		}
	}
	if got := l.total(observe.AcquireDuration, map[string]string{"docent.lock.outcome": "busy"}); got != 2*locks {
		t.Errorf("%d acquires were counted, want %d", got, 2*locks)
	}
	if got := l.total(observe.AcquireDuration, map[string]string{"docent.lock.name": observe.Other}); got != 2*(locks-100) {
		t.Errorf("%d acquires of other locks were counted, want %d", got, 2*(locks-100))
	}
}

// Prometheus panics at a label that is not UTF-8.
func TestNamesAreText(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	o := observe.NewMeasures(l, func(client.LockInfo) string { return "a\xffb" }).Observer()
	_, hooks := o.Lock(t.Context(), client.LockInfo{Recipe: "InterProcessMutex", Mode: "exclusive", Path: "/a"})
	hooks.Acquired(client.AcquireResult{Outcome: client.AcquireBusy})
	if got := l.total(observe.AcquireDuration, map[string]string{"docent.lock.name": "a\ufffdb"}); got != 1 {
		t.Errorf("%d acquires with that name", got)
	}
}
