package caches

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docent-go/docent/bench/internal/foreign"
	"github.com/docent-go/docent/bench/internal/run"
	"github.com/docent-go/docent/bench/internal/servers"
	"github.com/docent-go/docent/bench/internal/worker"
	"github.com/docent-go/docent/client"
)

// Result is what one kind has cost.
type Result struct {
	Kind Kind `json:"kind"`
	// Loads are the times to read the tree, in one process. The first has the start of
	// all that is compiled or grown at the first use.
	Loads []time.Duration `json:"loads"`
	Heap  int64           `json:"heap"` // bytes in use with the tree, beyond those of an idle client
	Peak  int64           `json:"peak"` // bytes in use while it was first loaded, beyond those
	// Missing is how many nodes were not there when the cache first said that it has read all.
	Missing int   `json:"missing"`
	Load    Count `json:"load"` // what one load has sent
	// Change and Reconnect are what one change and a reconnection without changes have
	// sent. Both are zero for a loop.
	Change    Count `json:"change"`
	Reconnect Count `json:"reconnect"`
}

// Results is a run.
type Results struct {
	Machine run.Machine `json:"machine"`
	Version string      `json:"version"` // of the server
	Curator string      `json:"curator"`
	Shape   Shape       `json:"shape"`
	Raw     int64       `json:"raw"` // bytes of all paths and data
	All     []Result    `json:"all"`
}

// Runner measures the kinds on one server of its own.
type Runner struct {
	Nodes  int // about so many
	Rounds int // loads of each kind
	Dir    string
	Say    io.Writer
}

const (
	top     = "/tree"
	quietly = 2 * time.Second // without requests: then nothing more comes
)

// Length is about how long a run takes.
func (r *Runner) Length() time.Duration {
	const ofNode, start = 150 * time.Microsecond, 40 * time.Second
	loads := len(Kinds()) * (r.Rounds + 1)
	return (start + time.Duration(loads*ShapeOf(r.Nodes).Nodes())*ofNode).Round(10 * time.Second)
}

// Run measures every kind. Also with an error it returns what was measured.
func (r *Runner) Run(ctx context.Context) (*Results, error) {
	dir, err := os.MkdirTemp(r.Dir, "docent-caches-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	watched, err := run.Watch(dir)
	if err != nil {
		return nil, err
	}
	e, err := servers.Start(ctx, servers.ZooKeeper, 1, false, dir)
	if err != nil {
		return nil, err
	}
	defer e.Stop()
	results := &Results{Version: e.Version, Shape: ShapeOf(r.Nodes)}
	err = r.all(ctx, e.Addrs[0], dir, results)
	results.Machine = watched.Done()
	return results, err
}

// subject is a kind and its process.
type subject struct {
	Result

	w *worker.Worker
}

func (r *Runner) all(ctx context.Context, addr, dir string, results *Results) (err error) {
	writer, err := client.Connect(ctx, addr, client.WithSessionTimeout(sessionTimeout), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { _ = writer.Close() }()
	r.say("making %d nodes", results.Shape.Nodes())
	if results.Raw, err = plant(ctx, writer, results.Shape); err != nil {
		return err
	}
	all, version, err := start(ctx, addr, dir)
	defer func() {
		for _, s := range all {
			s.w.Kill()
		}
	}()
	if results.Curator = version; err != nil {
		return err
	}
	for round := range r.Rounds {
		for _, s := range all {
			if err := r.load(ctx, s, results.Shape, round == 0); err != nil {
				return fmt.Errorf("%s: %w", s.Kind.Name, err)
			}
		}
	}
	for _, s := range all {
		r.say("%s: requests", s.Kind.Name)
		if err := s.meter(ctx, addr, writer); err != nil {
			return fmt.Errorf("%s: %w", s.Kind.Name, err)
		}
		if err := s.w.Quit(ctx); err != nil {
			return err
		}
		results.All = append(results.All, s.Result)
	}
	return nil
}

func (r *Runner) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Say, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// plant makes the tree and returns the bytes of its paths and data.
func plant(ctx context.Context, c *client.Client, s Shape) (raw int64, err error) {
	if _, err := c.Create(ctx, top, nil); err != nil {
		return 0, err
	}
	raw = int64(len(top))
	data := []byte(strings.Repeat("x", s.Value))
	for d := range s.Directories {
		dir := fmt.Sprintf("%s/d%d", top, d)
		ops := []client.Op{client.CreateOp(dir, nil)}
		raw += int64(len(dir))
		for i := range s.In {
			path := dir + "/n" + strconv.Itoa(i)
			ops = append(ops, client.CreateOp(path, data))
			raw += int64(len(path) + len(data))
		}
		if _, err := c.Multi(ctx, ops...); err != nil {
			return 0, err
		}
	}
	return raw, nil
}

// start starts the process of every kind, and connects it.
func start(ctx context.Context, addr, dir string) (all []*subject, version string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	java, version, err := foreign.CuratorCaches(ctx, dir)
	if err != nil {
		return nil, "", err
	}
	for _, k := range Kinds() {
		args := []string{self, Command}
		if k.Java {
			args = java
		}
		w, err := worker.Start(args, dir, k.Name)
		if err != nil {
			return all, version, err
		}
		all = append(all, &subject{Result{Kind: k}, w})
		if err := w.Do(ctx, "connect "+k.Name+" "+addr); err != nil {
			return all, version, fmt.Errorf("%s: %w", k.Name, err)
		}
	}
	return all, version, nil
}

// load lets a subject read the tree and forget it.
func (r *Runner) load(ctx context.Context, s *subject, shape Shape, weigh bool) error {
	before, err := s.memory(ctx)
	if err != nil {
		return err
	}
	var l Load
	said, err := s.w.Ask(ctx, "load "+top)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(said), &l); err != nil {
		return err
	}
	missing := shape.Nodes() - l.Nodes
	if missing != 0 && !s.Kind.Java {
		return fmt.Errorf("it has %d nodes of %d", l.Nodes, shape.Nodes())
	}
	r.say("%s: %v for %d nodes", s.Kind.Name, l.Took.Round(time.Millisecond), l.Nodes)
	s.Loads = append(s.Loads, l.Took)
	if weigh {
		after, err := s.memory(ctx)
		if err != nil {
			return err
		}
		s.Heap, s.Peak, s.Missing = after-before, l.Peak-before, missing
	}
	return s.w.Do(ctx, "drop")
}

func (s *subject) memory(ctx context.Context) (int64, error) {
	said, err := s.w.Ask(ctx, "memory")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(said, 10, 64)
}

// meter counts what the subject sends to read the tree, for one change, and for a
// reconnection.
func (s *subject) meter(ctx context.Context, addr string, writer *client.Client) error {
	m, err := StartMeter(ctx, addr)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := s.w.Do(ctx, "connect "+s.Kind.Name+" "+m.Addr()); err != nil {
		return err
	}
	idle, err := m.Settle(ctx, quietly)
	if err != nil {
		return err
	}
	if err := s.w.Do(ctx, "load "+top); err != nil {
		return err
	}
	loaded, err := m.Settle(ctx, quietly)
	if err != nil {
		return err
	}
	s.Load = loaded.minus(idle)
	if !s.Kind.Follows {
		return nil
	}
	const changed = top + "/d0/n1"
	stat, err := writer.Set(ctx, changed, []byte("changed"), client.AnyVersion)
	if err != nil {
		return err
	}
	if err := s.w.Do(ctx, fmt.Sprintf("await %s %d", changed, stat.Version)); err != nil {
		return err
	}
	told, err := m.Settle(ctx, quietly)
	if err != nil {
		return err
	}
	s.Change = told.minus(loaded)
	m.Cut()
	for m.Count().Sessions == told.Sessions {
		if err := sleep(ctx, poll); err != nil {
			return err
		}
	}
	again, err := m.Settle(ctx, quietly)
	s.Reconnect = again.minus(told)
	return err
}

// Best is the fastest load, on which other programs had the least effect.
func (r *Result) Best() time.Duration { return slices.Min(r.Loads) }
