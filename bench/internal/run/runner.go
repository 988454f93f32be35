package run

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/docent-go/docent/bench/internal/link"
	"github.com/docent-go/docent/bench/internal/measure"
	"github.com/docent-go/docent/bench/internal/plan"
	"github.com/docent-go/docent/bench/internal/servers"
)

// Cell is one peer in one workload and setting.
type Cell struct {
	Setting  string           `json:"setting"`
	Workload string           `json:"workload"`
	Peer     string           `json:"peer"`
	Rounds   []measure.Sample `json:"rounds"`
	Failed   string           `json:"failed,omitempty"` // why there are no more rounds
}

// Results is what a run has measured.
type Results struct {
	Machine  Machine  `json:"machine"`
	Versions []string `json:"versions"`
	Rounds   int      `json:"rounds"`
	Window   string   `json:"window"`
	Cells    []Cell   `json:"cells"`
}

// Err says which cells have failed.
func (r *Results) Err() error {
	var all []error
	for _, c := range r.Cells {
		if c.Failed != "" {
			all = append(all, fmt.Errorf("%s, %s, %s: %s", c.Setting, c.Workload, c.Peer, c.Failed))
		}
	}
	return errors.Join(all...)
}

// Runner carries plans out.
type Runner struct {
	Plan *plan.Plan
	Dir  string    // on the disk whose fsync is measured
	Say  io.Writer // progress

	commands map[plan.Language][]string // how to run a peer's process
	results  Results
	paths    int
}

// sessionTimeout is long, so that heartbeats of peers that are not measured at the
// moment cost almost nothing.
const sessionTimeout = 30 * time.Second

func (r *Runner) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Say, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// stage is the servers of a setting, and the addresses at which peers see them.
type stage struct {
	ensembles map[servers.Family]*servers.Ensemble
	addrs     map[servers.Family][]string
	links     []*link.Link
	dir       string
}

func (s *stage) close() {
	for _, l := range s.links {
		l.Close()
	}
	for _, e := range s.ensembles {
		e.Stop()
	}
}
