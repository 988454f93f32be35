package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/docent-go/docent/bench/internal/run"
	"github.com/docent-go/docent/bench/internal/servers"
	"github.com/docent-go/docent/bench/internal/worker"
	"github.com/docent-go/docent/client"
)

// Result is what one load has cost.
type Result struct {
	Load       Load          `json:"load"`
	Span       time.Duration `json:"span"`
	Requests   float64       `json:"requests"`  // a second, that the servers received
	Writes     float64       `json:"writes"`    // a second, that they logged
	ServerCPU  float64       `json:"serverCPU"` // part of one processor
	ServerHeap int64         `json:"serverHeap"`
	ClientCPU  float64       `json:"clientCPU"`
	Memory     Memory        `json:"memory"` // of the client's process, beyond that without sessions
	Watches    int           `json:"watches"`
	Ephemerals int           `json:"ephemerals"`
	Beats      Beats         `json:"beats"`
	Opened     time.Duration `json:"opened"` // how long it took to open the sessions
}

// Results is a run.
type Results struct {
	Machine run.Machine        `json:"machine"`
	Version string             `json:"version"`
	Setting string             `json:"setting"`
	Policy  client.LeasePolicy `json:"policy"`
	Base    Result             `json:"base"` // without sessions
	All     []Result           `json:"all"`
}

// Runner measures loads on servers of its own.
type Runner struct {
	Sizes   []int
	Timeout time.Duration
	Period  time.Duration // of heartbeats; 0 is the default
	Servers int
	Fsync   bool
	Dir     string
	Say     io.Writer
}

const (
	timeoutsPerWindow = 2  // a window is so many session timeouts
	workers           = 20 // sessions that warm a server up
	settle            = 3 * time.Second
)

// Length is about how long a run takes.
func (r *Runner) Length() time.Duration {
	var all time.Duration
	for _, n := range r.Sizes {
		const opening = 8 * time.Millisecond // of a session, and its end
		all += time.Duration(len(Loads(n, r.Timeout))) * (r.window() + 2*settle + time.Duration(n)*opening)
	}
	return (all + r.window()).Round(time.Minute)
}

func (r *Runner) window() time.Duration { return timeoutsPerWindow * r.Timeout }

// Run measures every load. Also with an error it returns what was measured.
func (r *Runner) Run(ctx context.Context) (*Results, error) {
	dir, err := os.MkdirTemp(r.Dir, "docent-sessions-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	watched, err := run.Watch(dir)
	if err != nil {
		return nil, err
	}
	e, err := servers.Start(ctx, servers.ZooKeeper, r.Servers, r.Fsync, dir)
	if err != nil {
		return nil, err
	}
	defer e.Stop()
	results := &Results{Version: e.Version, Setting: r.setting(), Policy: client.LeasePolicy{HeartbeatPeriod: r.Period}}
	err = r.all(ctx, e, dir, results)
	results.Machine = watched.Done()
	return results, err
}

func (r *Runner) setting() string {
	fsync := map[bool]string{true: "fsync", false: "no fsync"}[r.Fsync]
	if r.Servers == 1 {
		return "one server, " + fsync
	}
	return fmt.Sprintf("%d servers, %s", r.Servers, fsync)
}

// all warms the server up and measures one load after the other.
func (r *Runner) all(ctx context.Context, e *servers.Ensemble, dir string, results *Results) error {
	warm := Load{Name: warming, Holding: workers, Timeout: r.Timeout}
	if _, err := r.one(ctx, e, dir, "/warm", warm, settle); err != nil {
		return err
	}
	base, err := r.one(ctx, e, dir, "/base", Load{Name: "none", Timeout: r.Timeout}, r.window())
	if err != nil {
		return err
	}
	results.Base = *base
	for _, n := range r.Sizes {
		for _, load := range Loads(n, r.Timeout) {
			r.say("%d sessions, %s", n, load.Name)
			one, err := r.one(ctx, e, dir, fmt.Sprintf("/s%d%s", n, load.Name), load, r.window())
			if err != nil {
				return fmt.Errorf("%d sessions, %s: %w", n, load.Name, err)
			}
			results.All = append(results.All, *one)
		}
	}
	return nil
}

func (r *Runner) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Say, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// one opens the sessions of a load, measures them while they stay, and closes them.
func (r *Runner) one(ctx context.Context, e *servers.Ensemble, dir, root string, load Load, window time.Duration) (_ *Result, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w, err := worker.Start([]string{self, Command}, dir, "sessions"+filepath.Base(root))
	if err != nil {
		return nil, err
	}
	defer func() {
		over := context.WithoutCancel(ctx)
		closed := w.Do(over, "close") // has more patience than quit
		quit := w.Quit(over)
		if err == nil {
			err = errors.Join(closed, quit)
		}
	}()
	result := &Result{Load: load}
	var before Memory
	if err := tell(ctx, w, "memory", &before); err != nil {
		return nil, err
	}
	order, err := json.Marshal(Order{Load: load, Addrs: e.Addrs, Root: root, Period: r.Period.String()})
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := w.Do(ctx, "open "+string(order)); err != nil {
		return nil, err
	}
	if err := stand(ctx, e, &load); err != nil {
		var now Beats
		return nil, errors.Join(err, tell(ctx, w, "end", &now), lost(now))
	}
	result.Opened = time.Since(begun)
	if load.Name == warming {
		if err := w.Do(ctx, "work"); err != nil {
			return nil, err
		}
	}
	if err := r.measure(ctx, e, w, result, window); err != nil {
		return nil, err
	}
	m := result.Memory
	result.Memory = Memory{m.Resident - before.Resident, m.Heap - before.Heap, m.Stacks - before.Stacks, m.Goroutines - before.Goroutines}
	return result, nil
}

// warming is the name of the load that works.
const warming = "warm"

// Command is the argument with which this program serves sessions.
const Command = "sessions-worker"

// tell sends a command that is answered with JSON.
func tell(ctx context.Context, w *worker.Worker, command string, to any) error {
	text, err := w.Ask(ctx, command)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), to)
}

// stand waits until every contender has its node, and a moment more.
func stand(ctx context.Context, e *servers.Ensemble, load *Load) error {
	const patience, pause = time.Minute, 100 * time.Millisecond
	for begun := time.Now(); ; {
		is, err := e.Gauges(ctx)
		if err != nil {
			return err
		}
		if is.Ephemerals == load.Waiting+load.Holding {
			return sleep(ctx, settle)
		}
		if time.Since(begun) > patience {
			return fmt.Errorf("%d of %d contenders stand in line", is.Ephemerals, load.Waiting+load.Holding)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// lost is an error if holds are lost: then the load is not what it should be.
func lost(b Beats) error {
	if b.Lost == 0 {
		return nil
	}
	return fmt.Errorf("%d holds were lost: this machine does not carry so many sessions with this timeout now", b.Lost)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// meters is what is read before and after a window.
type meters struct {
	at             time.Time
	count          servers.Counters
	gauges         servers.Gauges
	server, client time.Duration
}

func read(ctx context.Context, e *servers.Ensemble, w *worker.Worker) (m meters, err error) {
	if m.gauges, err = e.Gauges(ctx); err != nil {
		return m, err
	}
	if m.count, err = e.Counters(ctx); err != nil {
		return m, err
	}
	if m.server, err = e.CPU(); err != nil {
		return m, err
	}
	m.at = time.Now()
	m.client, err = w.CPU()
	return m, err
}

// measure fills in what a window of a load that stands has cost.
func (r *Runner) measure(ctx context.Context, e *servers.Ensemble, w *worker.Worker, to *Result, window time.Duration) error {
	if err := w.Do(ctx, "begin"); err != nil {
		return err
	}
	before, err := read(ctx, e, w)
	if err != nil {
		return err
	}
	if err := sleep(ctx, window); err != nil {
		return err
	}
	after, err := read(ctx, e, w)
	if err != nil {
		return err
	}
	if err := tell(ctx, w, "end", &to.Beats); err != nil {
		return err
	}
	if err := tell(ctx, w, "memory", &to.Memory); err != nil {
		return err
	}
	to.Span = after.at.Sub(before.at)
	per := 1 / to.Span.Seconds()
	to.Requests = (after.count.Requests - before.count.Requests) * per
	to.Writes = float64(after.gauges.Zxid-before.gauges.Zxid) * per
	to.ServerCPU = (after.server - before.server).Seconds() * per
	to.ClientCPU = (after.client - before.client).Seconds() * per
	to.Watches, to.Ephemerals = after.gauges.Watches, after.gauges.Ephemerals
	if err := lost(to.Beats); err != nil {
		return err
	}
	to.ServerHeap, err = e.Heap(ctx)
	return err
}
