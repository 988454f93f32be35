package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/docent-go/docent/bench/internal/load"
	"github.com/docent-go/docent/bench/internal/measure"
	"github.com/docent-go/docent/bench/internal/plan"
	"github.com/docent-go/docent/bench/internal/servers"
	"github.com/docent-go/docent/bench/internal/worker"
)

// entrant is a peer in one workload.
type entrant struct {
	peer    plan.Peer
	workers []*worker.Worker // its processes: that of the contenders, and that of a lone one
	servers *servers.Ensemble
	cell    *Cell
}

// workload measures every peer in one workload, in turn. A peer that fails is out and its
// cell says why. The error is that of ctx.
func (r *Runner) workload(ctx context.Context, s *plan.Setting, w *plan.Workload, st *stage) error {
	peers := r.Plan.Of(w)
	cells := make([]Cell, len(peers))
	entrants := make([]*entrant, len(peers))
	for i, peer := range peers {
		cells[i] = Cell{Setting: s.Name, Workload: w.Name, Peer: peer.Name}
		entrants[i] = &entrant{peer: peer, servers: st.ensembles[peer.Family], cell: &cells[i]}
		entrants[i].failed(ctx, r, r.launch(ctx, entrants[i], w, st))
	}
	for round := range r.Plan.Rounds {
		for _, i := range measure.Turns(round, len(entrants)) {
			e := entrants[i]
			if e.cell.Failed != "" || ctx.Err() != nil {
				continue
			}
			sample, err := r.round(ctx, e, w, round == 0)
			if err == nil {
				e.cell.Rounds = append(e.cell.Rounds, *sample)
			}
			e.failed(ctx, r, err)
		}
	}
	for _, e := range entrants {
		e.failed(ctx, r, e.quit(ctx))
	}
	r.results.Cells = append(r.results.Cells, cells...)
	return ctx.Err()
}

// failed notes the first error of an entrant, unless the run was given up.
func (e *entrant) failed(ctx context.Context, r *Runner, err error) {
	if err != nil && e.cell.Failed == "" && ctx.Err() == nil {
		e.cell.Failed = err.Error()
		r.say("%s FAILED: %v", e.peer.Name, err)
		for _, one := range e.workers {
			one.Kill() // it would go on and disturb the others
		}
		e.workers = nil
	}
}

// do sends a command to every process, and returns the first error.
func (e *entrant) do(ctx context.Context, command string) error {
	for _, one := range e.workers {
		if err := one.Do(ctx, command); err != nil {
			return err
		}
	}
	return nil
}

// quit ends every process, and returns the first error.
func (e *entrant) quit(ctx context.Context) (first error) {
	for _, one := range e.workers {
		if err := one.Quit(context.WithoutCancel(ctx)); first == nil {
			first = err
		}
	}
	e.workers = nil
	return first
}

// launch starts a peer's processes and lets their contenders stand in line.
func (r *Runner) launch(ctx context.Context, e *entrant, w *plan.Workload, st *stage) error {
	r.paths++
	name := fmt.Sprintf("%s-%s", w.Name, e.peer.Name)
	spec := e.peer.Spec(w, st.addrs[e.peer.Family], fmt.Sprintf("/bench%d", r.paths), sessionTimeout)
	if err := r.process(ctx, e, st.dir, name, spec); err != nil {
		return err
	}
	if w.Lone {
		if err := r.process(ctx, e, st.dir, name+"-lone", spec.Lone()); err != nil {
			return err
		}
	}
	return e.settle(ctx, w)
}

// process starts one process of a peer and tells it what to set up.
func (r *Runner) process(ctx context.Context, e *entrant, dir, name string, spec *load.Spec) error {
	started, err := worker.Start(r.commands[e.peer.Language], dir, name)
	if err != nil {
		return err
	}
	e.workers = append(e.workers, started)
	return started.Do(ctx, spec.Line())
}

// settle waits until a line stands: until neither the process nor its servers do more
// than heartbeats. The looks are long, since on a loaded machine all are slow.
func (e *entrant) settle(ctx context.Context, w *plan.Workload) error {
	const (
		few     = 8 // stand in line sooner than this could tell
		look    = time.Second
		little  = look * 3 / 100
		enough  = 2 // looks, one after the other
		longest = 5 * time.Minute
	)
	if w.Contenders <= few {
		return nil
	}
	limit := time.Now().Add(longest)
	last, err := e.used()
	for quiet := 0; err == nil && quiet < enough; {
		if err = pause(ctx, look); err != nil {
			break
		}
		now, err := e.used()
		if err != nil {
			return err
		}
		quiet++
		if now-last > little {
			quiet = 0
		}
		last = now
		if time.Now().After(limit) {
			return fmt.Errorf("the line of %d does not stand after %v", w.Contenders, longest)
		}
	}
	return err
}

// used is the processor time of the peer's processes and of its servers so far.
func (e *entrant) used() (time.Duration, error) {
	server, err := e.servers.CPU()
	if err != nil {
		return 0, err
	}
	client, err := e.cpu()
	return server + client, err
}

// cpu is the processor time of the peer's processes so far.
func (e *entrant) cpu() (all time.Duration, err error) {
	for _, one := range e.workers {
		used, err := one.CPU()
		if err != nil {
			return 0, err
		}
		all += used
	}
	return all, nil
}

// round measures one peer once.
func (r *Runner) round(ctx context.Context, e *entrant, w *plan.Workload, first bool) (*measure.Sample, error) {
	warm := r.Plan.Warm
	if first && e.peer.Language == plan.Java {
		warm = max(warm, r.Plan.WarmJava)
	}
	if err := e.do(ctx, "open"); err != nil {
		return nil, err
	}
	if err := pause(ctx, warm); err != nil {
		return nil, err
	}
	before, err := e.meter(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.do(ctx, "begin"); err != nil {
		return nil, err
	}
	if err := r.window(ctx, e, w.Least()); err != nil {
		return nil, err
	}
	result, lone, err := e.end(ctx)
	if err != nil {
		return nil, err
	}
	after, err := e.meter(ctx)
	if err != nil {
		return nil, err
	}
	sample := measure.NewSample(result, lone, before, after)
	return &sample, e.do(ctx, "close")
}

// end ends recording. lone is nil unless there is a lone contender.
func (e *entrant) end(ctx context.Context) (result, lone *load.Result, err error) {
	result, err = e.workers[0].End(ctx)
	if err != nil || len(e.workers) == 1 {
		return result, nil, err
	}
	lone, err = e.workers[1].End(ctx)
	if errors.Is(err, worker.ErrNoCycle) {
		err = nil // it had no turn, which is a figure
	}
	return result, lone, err
}

// window waits as long as the plan says, and longer where fewer cycles than least have
// ended by then.
func (r *Runner) window(ctx context.Context, e *entrant, least int) error {
	const longest = 30 * time.Second
	for limit := time.Now().Add(longest); time.Now().Before(limit); {
		if err := pause(ctx, r.Plan.Window); err != nil {
			return err
		}
		n, err := e.workers[0].Count(ctx)
		if err != nil || n >= least {
			return err
		}
	}
	return nil // End says if there were none
}

func (e *entrant) meter(ctx context.Context) (m measure.Meter, err error) {
	counters, err := e.servers.Counters(ctx)
	if err != nil {
		return m, err
	}
	m.Requests, m.Events, m.At = counters.Requests, counters.Events, time.Now()
	if m.Server, err = e.servers.CPU(); err != nil {
		return m, err
	}
	m.Client, err = e.cpu()
	return m, err
}

// pause waits unless the context ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
