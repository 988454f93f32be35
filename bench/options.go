package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docent-go/docent/bench/internal/caches"
	"github.com/docent-go/docent/bench/internal/plan"
	"github.com/docent-go/docent/bench/internal/report"
	"github.com/docent-go/docent/bench/internal/run"
	"github.com/docent-go/docent/bench/internal/sessions"
)

// errHelp means that the usage was asked for and printed.
var errHelp = flag.ErrHelp

// errNothing means that not even one cell of a table can be shown.
var errNothing = errors.New("nothing was measured")

// options is what the flags say.
type options struct {
	plan                *plan.Plan
	list                bool
	dir, out, doc, from string
	sessions            *sessions.Runner // nil unless sessions are to be measured
	caches              *caches.Runner   // nil unless caches are
}

func parse(args []string, usage io.Writer) (*options, error) {
	var (
		o                  options
		choice             plan.Choice
		quick              bool
		rounds             int
		window, warm, java time.Duration
	)
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(usage)
	f.BoolVar(&o.list, "list", false, "list settings, workloads and peers, and end")
	f.StringVar(&choice.Settings, "setting", "", "which settings, a regular `expression` for whole names; default all")
	f.StringVar(&choice.Workloads, "workload", "", "which workloads, a regular `expression`")
	f.StringVar(&choice.Peers, "peer", "", "which peers, a regular `expression`")
	f.IntVar(&rounds, "rounds", 0, "rounds of each peer; default 5, with -quick 2")
	f.DurationVar(&window, "window", 0, "what is measured in a round; default 1s, with -quick 100ms")
	f.DurationVar(&warm, "warm", 0, "how long a peer runs before each window; default 300ms, with -quick 50ms")
	f.DurationVar(&java, "warm-java", 0, "how long a Java peer runs before its first window; default 3s, with -quick 300ms")
	f.BoolVar(&quick, "quick", false, "show in three minutes that everything works; the figures mean little")
	f.StringVar(&o.dir, "dir", "", "`directory` for the servers' data, on the disk whose fsync is to be measured; default that of temporary files")
	f.StringVar(&o.out, "out", "", "`directory` to write results.json, tables.md and plots to")
	f.StringVar(&o.doc, "doc", "", "`directory` of pages whose generated parts are to be replaced, such as results; with -sessions or -caches one Markdown file")
	f.StringVar(&o.from, "from", "", "a results.json to report instead of measuring")
	s := sessions.Runner{Servers: 1, Say: os.Stderr}
	sizes := f.String("sessions", "", "measure instead what so many `sessions` cost that stay, such as 1,100,1000,5000; with -doc fills results/staying-sessions.md")
	f.DurationVar(&s.Timeout, "session-timeout", 15*time.Second, "of -sessions")
	f.DurationVar(&s.Period, "heartbeat-period", 0, "of -sessions; default that of the client")
	f.IntVar(&s.Servers, "servers", 1, "of -sessions")
	f.BoolVar(&s.Fsync, "fsync", false, "of the servers of -sessions")
	nodes := f.Int("caches", 0, "measure instead caches of a tree of so many `nodes`, such as 50000; with -doc fills results/caches.md; -rounds are the loads of each")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("what is %q? See -help", f.Args())
	}
	var err error
	if *nodes > 0 {
		const loads = 4
		o.caches = &caches.Runner{Nodes: *nodes, Rounds: loads, Dir: o.dir, Say: os.Stderr}
		if rounds > 0 {
			o.caches.Rounds = rounds
		}
		return &o, nil
	}
	if *sizes != "" {
		s.Dir, o.sessions = o.dir, &s
		s.Sizes, err = numbers(*sizes)
		return &o, err
	}
	if o.plan, err = plan.New(choice, quick); err != nil {
		return nil, err
	}
	p := o.plan
	p.Rounds, p.Window, p.Warm, p.WarmJava = 5, time.Second, 300*time.Millisecond, 3*time.Second
	if quick {
		p.Rounds, p.Window, p.Warm, p.WarmJava = 2, 100*time.Millisecond, 50*time.Millisecond, 300*time.Millisecond
	}
	if rounds > 0 {
		p.Rounds = rounds
	}
	for _, one := range []struct{ to, from *time.Duration }{{&p.Window, &window}, {&p.Warm, &warm}, {&p.WarmJava, &java}} {
		if *one.from > 0 {
			*one.to = *one.from
		}
	}
	return &o, nil
}

func (o *options) results(ctx context.Context) (*run.Results, error) {
	if o.from != "" {
		return report.Read(o.from)
	}
	fmt.Fprintf(os.Stderr, "%d settings, %d workloads, %d peers, %d rounds of %v: about %v\n", len(o.plan.Settings),
		len(o.plan.Workloads), len(o.plan.Peers), o.plan.Rounds, o.plan.Window, o.plan.Length())
	r := &run.Runner{Plan: o.plan, Dir: o.dir, Say: os.Stderr}
	return r.Run(ctx)
}

func list(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, s := range plan.Settings() {
		_, _ = fmt.Fprintf(w, "setting\t%s\t%s\n", s.Name, s.Title)
	}
	for _, one := range plan.Workloads() {
		var able []string
		for _, p := range plan.Peers() {
			if p.Does(&one) {
				able = append(able, p.Name)
			}
		}
		_, _ = fmt.Fprintf(w, "workload\t%s\t%s (%s)\n", one.Name, one.Title, strings.Join(able, " "))
	}
	for _, p := range plan.Peers() {
		_, _ = fmt.Fprintf(w, "peer\t%s\t%s\n", p.Name, p.Title)
	}
	return w.Flush()
}

// numbers reads a list such as "1,100".
func numbers(list string) (all []int, err error) {
	for one := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(one))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-sessions %s: %q is no number of sessions", list, one)
		}
		all = append(all, n)
	}
	return all, nil
}
