// Package plan says what is measured: settings, workloads and peers.
package plan

import (
	"fmt"

	"github.com/docent-go/docent/bench/internal/load"
)

// Workload is what contenders do.
type Workload struct {
	Name       string
	Title      string
	Kind       load.Kind
	Contenders int
	Sessions   int
	Locks      int
	Permits    int
	Limit      int
	Lone       bool // beside them contends one of another process
}

// permits is how many permits a semaphore has.
const permits = 64

// Workloads is everything that is measured.
func Workloads() []Workload {
	all := []Workload{
		{Name: "free", Title: "a free lock", Kind: load.Mutex, Contenders: 1, Sessions: 1, Locks: 1},
		{Name: "free8", Title: "8 free locks, one session", Kind: load.Mutex, Contenders: 8, Sessions: 1, Locks: 8},
	}
	for _, n := range []int{2, 8, 64, 512, 4096} {
		all = append(all, Workload{
			Name: fmt.Sprintf("lock%d", n), Title: fmt.Sprintf("one lock, %d contenders, one session", n),
			Kind: load.Mutex, Contenders: n, Sessions: 1, Locks: 1,
		})
	}
	for _, n := range []int{8, 64} {
		all = append(all, Workload{
			Name: fmt.Sprintf("sessions%d", n), Title: fmt.Sprintf("one lock, %d contenders with a session each", n),
			Kind: load.Mutex, Contenders: n, Sessions: n, Locks: 1,
		})
	}
	all = append(all, Workload{
		Name: "rw", Title: "one read/write lock, 8 contenders, one session, 19 of 20 read",
		Kind: load.ReadWrite, Contenders: 8, Sessions: 1, Locks: 1,
	})
	for _, n := range []int{1, 4, 8} {
		all = append(all, Workload{
			Name: fmt.Sprintf("semaphore%d", n), Title: fmt.Sprintf("%d of %d permits, one contender", n, permits),
			Kind: load.Semaphore, Contenders: 1, Sessions: 1, Locks: 1, Permits: n, Limit: permits,
		})
	}
	// There are always enough permits for all contenders that take several. Curator takes
	// them one after the other, so contenders that each have some would wait for each
	// other for ever.
	for _, c := range []struct{ permits, contenders int }{{1, 8}, {4, 8}, {8, 8}, {1, 128}} {
		all = append(all, Workload{
			Name:  fmt.Sprintf("semaphore%dx%d", c.permits, c.contenders),
			Title: fmt.Sprintf("%d of %d permits, %d contenders, one session", c.permits, permits, c.contenders),
			Kind:  load.Semaphore, Contenders: c.contenders, Sessions: 1, Locks: 1, Permits: c.permits, Limit: permits,
		})
	}
	all = append(all, full()...)
	all = append(all, crowds()...)
	return append(
		all,
		Workload{
			Name: "multi", Title: fmt.Sprintf("%d free locks as one, one contender", load.MultiLocks),
			Kind: load.Multi, Contenders: 1, Sessions: 1, Locks: 1,
		},
		Workload{
			Name: "multi8", Title: fmt.Sprintf("%d locks as one, 8 contenders, one session", load.MultiLocks),
			Kind: load.Multi, Contenders: 8, Sessions: 1, Locks: 1,
		},
		Workload{
			Name: "multi8s", Title: fmt.Sprintf("%d locks as one, 8 contenders with a session each", load.MultiLocks),
			Kind: load.Multi, Contenders: 8, Sessions: 8, Locks: 1,
		},
		Workload{
			Name: "counter", Title: "one atomic number, 64 add to it, eight in each of 8 sessions",
			Kind: load.Counter, Contenders: 64, Sessions: 8, Locks: 1,
		},
		Workload{
			Name: "counter-lock", Title: "the same, with a lock after three tries",
			Kind: load.Promoted, Contenders: 64, Sessions: 8, Locks: 1,
		},
	)
}

// full is semaphores that have fewer permits than contenders. Each takes one permit, so
// nobody waits while it has some.
func full() []Workload {
	var all []Workload
	for _, n := range []int{1, 4} {
		for _, c := range []struct {
			name, title          string
			contenders, sessions int
		}{
			{"8", "8 contenders, one session", 8, 1},
			{"64", "64 contenders, one session", 64, 1},
			{"8s", "8 contenders with a session each", 8, 8},
		} {
			all = append(all, Workload{
				Name:  fmt.Sprintf("full%dx%s", n, c.name),
				Title: fmt.Sprintf("a full semaphore of %d, %s, one permit each", n, c.title),
				Kind:  load.Semaphore, Contenders: c.contenders, Sessions: c.sessions, Locks: 1, Permits: 1, Limit: n,
			})
		}
	}
	return all
}

// crowds is contenders of one process that are many, beside one of another process.
func crowds() []Workload {
	var all []Workload
	for _, n := range []int{8, 400} {
		for _, c := range []struct {
			name, title    string
			kind           load.Kind
			permits, limit int
		}{
			{"", "one lock", load.Mutex, 0, 0},
			{"-semaphore", "a semaphore of 1", load.Semaphore, 1, 1},
			{"-multi", fmt.Sprintf("%d locks as one", load.MultiLocks), load.Multi, 0, 0},
		} {
			all = append(all, Workload{
				Name:  fmt.Sprintf("crowd%d%s", n, c.name),
				Title: fmt.Sprintf("%s, %d contenders of one process beside one of another", c.title, n),
				Kind:  c.kind, Contenders: n, Sessions: 1, Locks: 1, Permits: c.permits, Limit: c.limit, Lone: true,
			})
		}
	}
	return all
}

// Least is how many cycles must end before a window says anything. A lone contender may
// have its turn behind each of the others, and has to have several.
func (w *Workload) Least() int {
	const few, turns = 10, 4
	if w.Lone {
		return max(few, turns*w.Contenders)
	}
	return few
}

// Queue says whether the contenders wait for each other in one line.
func (w *Workload) Queue() bool {
	switch w.Kind {
	case load.Mutex, load.Multi:
		return w.Contenders > w.Locks
	case load.Semaphore:
		return w.Contenders*w.Permits > w.Limit
	case load.ReadWrite, load.Counter, load.Promoted:
	}
	return false
}

// Plain says whether contenders of one session stand in line for one mutex, so that such
// workloads differ only in the length of the line.
func (w *Workload) Plain() bool {
	return w.Kind == load.Mutex && w.Queue() && w.Sessions == 1 && !w.Lone
}

// Floor is the peer that a workload is compared to.
func (w *Workload) Floor() string {
	if w.Queue() {
		return "rawho"
	}
	return "raw"
}
