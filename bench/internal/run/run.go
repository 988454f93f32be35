// Package run carries a plan out.
package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/docent-go/docent/bench/internal/foreign"
	"github.com/docent-go/docent/bench/internal/link"
	"github.com/docent-go/docent/bench/internal/plan"
	"github.com/docent-go/docent/bench/internal/servers"
)

// Run starts what the plan needs, measures and ends it. Also with an error it returns
// what was measured until then.
func (r *Runner) Run(ctx context.Context) (*Results, error) {
	dir, err := os.MkdirTemp(r.Dir, "docent-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r.results = Results{Rounds: r.Plan.Rounds, Window: r.Plan.Window.String()}
	watched, err := Watch(dir)
	if err != nil {
		return nil, err
	}
	if err := r.prepare(ctx, dir); err != nil {
		return nil, err
	}
	for i, s := range r.Plan.Settings {
		below := filepath.Join(dir, s.Name)
		r.say("setting %d of %d: %s", i+1, len(r.Plan.Settings), s.Title)
		if err = r.setting(ctx, &s, below); err != nil {
			err = fmt.Errorf("%s: %w", s.Title, err)
			break
		}
		_ = os.RemoveAll(below)
	}
	r.results.Machine = watched.Done()
	return &r.results, err
}

// prepare finds out how to start the processes of the peers.
func (r *Runner) prepare(ctx context.Context, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, m := range modules() {
		r.addVersion(m)
	}
	r.commands = map[plan.Language][]string{plan.Go: {self, "worker"}}
	for _, peer := range r.Plan.Peers {
		var ready func(context.Context, string) ([]string, string, error)
		switch peer.Language {
		case plan.Java:
			ready = foreign.Curator
		case plan.Python:
			ready = foreign.Kazoo
		case plan.Go:
			continue
		}
		args, version, err := ready(ctx, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", peer.Name, err)
		}
		r.commands[peer.Language] = args
		r.addVersion(version)
	}
	return nil
}

func (r *Runner) addVersion(version string) {
	if !slices.Contains(r.results.Versions, version) {
		r.results.Versions = append(r.results.Versions, version)
	}
}

// setting measures every workload in one setting.
func (r *Runner) setting(ctx context.Context, s *plan.Setting, dir string) error {
	st, err := r.start(ctx, s, dir)
	defer st.close()
	if err != nil {
		return err
	}
	if err := r.warm(ctx, st); err != nil {
		return err
	}
	workloads := r.Plan.In(s)
	for i, w := range workloads {
		r.say("%s, workload %d of %d: %s", s.Name, i+1, len(workloads), w.Title)
		if err := r.workload(ctx, s, &w, st); err != nil {
			return err
		}
	}
	return nil
}

// start starts the servers that the peers of the plan need.
func (r *Runner) start(ctx context.Context, s *plan.Setting, dir string) (*stage, error) {
	st := &stage{ensembles: map[servers.Family]*servers.Ensemble{}, addrs: map[servers.Family][]string{}, dir: dir}
	for _, peer := range r.Plan.Peers {
		if st.ensembles[peer.Family] != nil {
			continue
		}
		e, err := servers.Start(ctx, peer.Family, s.Servers, s.Fsync, dir)
		if err != nil {
			return st, err
		}
		st.ensembles[peer.Family] = e
		r.addVersion(e.Version)
		for _, addr := range e.Addrs {
			if s.RoundTrip > 0 {
				l, err := link.Start(ctx, addr, s.RoundTrip)
				if err != nil {
					return st, err
				}
				st.links = append(st.links, l)
				addr = l.Addr()
			}
			st.addrs[peer.Family] = append(st.addrs[peer.Family], addr)
		}
	}
	return st, nil
}
