package plan

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Plan is one run.
type Plan struct {
	Settings  []Setting
	Workloads []Workload
	Peers     []Peer
	Rounds    int
	Window    time.Duration // that is measured
	Warm      time.Duration // before each window
	WarmJava  time.Duration // before the first, where a compiler works
	Short     bool          // leaves workloads out, see In
}

// Choice is what flags say, each a regular expression for whole names; empty is all.
type Choice struct{ Settings, Workloads, Peers string }

// What a short plan has: enough to show that everything works.
const (
	quickContenders = 16
	quickSetting    = "one"
	quickElsewhere  = "lock8"
	quickWithout    = "full4x8|full1x8s|crowd8-.*" // another one has the same shape
)

// New returns the plan of a run. A short one leaves workloads out, unless they are chosen.
func New(c Choice, short bool) (*Plan, error) {
	p := &Plan{Short: short && c.Workloads == ""}
	settings, err := chosen(Settings(), c.Settings, func(s Setting) string { return s.Name })
	if err != nil {
		return nil, err
	}
	workloads, err := chosen(Workloads(), c.Workloads, func(w Workload) string { return w.Name })
	if err != nil {
		return nil, err
	}
	p.Peers, err = chosen(Peers(), c.Peers, func(p Peer) string { return p.Name })
	if err != nil {
		return nil, err
	}
	p.Settings, p.Workloads = settings, workloads
	return p, nil
}

func chosen[T any](all []T, pattern string, name func(T) string) ([]T, error) {
	if pattern == "" {
		return all, nil
	}
	re, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil {
		return nil, err
	}
	var some []T
	var names []string
	for _, one := range all {
		names = append(names, name(one))
		if re.MatchString(name(one)) {
			some = append(some, one)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("%q is none of %s", pattern, strings.Join(names, ", "))
	}
	return some, nil
}

// In returns the workloads of a setting.
func (p *Plan) In(s *Setting) []Workload {
	if !p.Short {
		return p.Workloads
	}
	elsewhere := regexp.MustCompile("^(?:" + quickElsewhere + ")$")
	without := regexp.MustCompile("^(?:" + quickWithout + ")$")
	var some []Workload
	for _, w := range p.Workloads {
		if w.Contenders > quickContenders || without.MatchString(w.Name) {
			continue
		}
		if s.Name == quickSetting || elsewhere.MatchString(w.Name) {
			some = append(some, w)
		}
	}
	return some
}

// Of returns the peers of a workload.
func (p *Plan) Of(w *Workload) []Peer {
	var some []Peer
	for _, peer := range p.Peers {
		if peer.Does(w) {
			some = append(some, peer)
		}
	}
	return some
}

// Length is about how long the run takes.
func (p *Plan) Length() time.Duration {
	const (
		starting = 6 * time.Second       // the servers of a setting
		process  = time.Second           // of a peer, in and out
		cycle    = 2 * time.Millisecond  // of a peer that is slow
		joining  = 12 * time.Millisecond // a contender stands in line
		stands   = 2 * time.Second       // until a long line is known to stand
		long     = 8
	)
	var all time.Duration
	for _, s := range p.Settings {
		all += starting
		for _, w := range p.In(&s) {
			for _, peer := range p.Of(&w) {
				window := max(p.Window, time.Duration(w.Least())*cycle)
				all += process + time.Duration(w.Contenders)*joining + time.Duration(p.Rounds)*(window+p.Warm)
				if w.Lone {
					all += process
				}
				if w.Contenders > long {
					all += stands
				}
				if peer.Language == Java {
					all += p.WarmJava
				}
			}
		}
	}
	return all.Round(time.Minute)
}
