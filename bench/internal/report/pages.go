package report

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/docent-go/docent/bench/internal/load"
	"github.com/docent-go/docent/bench/internal/plan"
	"github.com/docent-go/docent/bench/internal/run"
)

// Names of pages in bench/results, without ".md".
const (
	freeLocks      = "free-locks"
	oneProcess     = "one-process"
	ownSessions    = "sessions"
	readWriteLocks = "read-write-locks"
	semaphores     = "semaphores"
	multiLocks     = "multi-locks"
	crowds         = "crowds"
	counters       = "counters"
	plots          = "plots"
)

// page is the name of the page that has the tables of a workload.
func page(w *plan.Workload) string {
	switch {
	case w.Lone:
		return crowds
	case w.Kind == load.ReadWrite:
		return readWriteLocks
	case w.Kind == load.Semaphore:
		return semaphores
	case w.Kind == load.Multi:
		return multiLocks
	case w.Kind == load.Counter || w.Kind == load.Promoted:
		return counters
	case w.Sessions > 1:
		return ownSessions
	case w.Queue():
		return oneProcess
	}
	return freeLocks
}

// Pages returns the name of each page with tables.
func Pages() []string {
	var all []string
	for _, w := range plan.Workloads() {
		if name := page(&w); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// only returns the results of one page's workloads.
func only(r *run.Results, name string) *run.Results {
	some := *r
	some.Cells = nil
	for _, w := range plan.Workloads() {
		if page(&w) != name {
			continue
		}
		for _, c := range r.Cells {
			if c.Workload == w.Name {
				some.Cells = append(some.Cells, c)
			}
		}
	}
	return &some
}

// Document replaces what is between the marks of the pages in dir, which is bench/results:
// on each page the tables of its workloads, and on one page all plots, which go to dir too. A
// page without a workload in the results stays as it is. So do the plots, which are of all
// pages, unless the results are too.
func Document(r *run.Results, dir string) error {
	whole := true
	for _, name := range Pages() {
		some := only(r, name)
		if len(some.Cells) == 0 {
			whole = false
			continue
		}
		if err := Replace(filepath.Join(dir, name+".md"), Text(some)); err != nil {
			return err
		}
	}
	if !whole {
		return nil
	}
	all, err := savePictures(r, dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(conditions(r))
	for _, p := range all {
		fmt.Fprintf(&b, "\n![%s](%s.svg)\n", p.title, p.name)
	}
	return Replace(filepath.Join(dir, plots+".md"), b.String())
}
