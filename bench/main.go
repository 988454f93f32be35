// Command bench measures Docent's locks beside those of other clients, and beside the
// least that their requests cost, on servers that it starts itself:
//
//	cd bench && go run . -list
//	cd bench && go run . -quick
//	cd bench && go run . -setting one -workload 'lock.*' -peer 'docent|rawho|zklock' -out /tmp/out
//	cd bench && go run . -doc results
//	cd bench && go run . -sessions 1,100,1000,5000 -doc results/staying-sessions.md
//	cd bench && go run . -caches 50000 -doc results/caches.md
//
// See bench/results/method.md for the method and for how to read the tables.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/docent-go/docent/bench/internal/caches"
	"github.com/docent-go/docent/bench/internal/load"
	"github.com/docent-go/docent/bench/internal/peers"
	"github.com/docent-go/docent/bench/internal/report"
	"github.com/docent-go/docent/bench/internal/sessions"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := start(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string) error {
	if len(args) == 1 && args[0] == "worker" {
		return load.Serve(context.WithoutCancel(ctx), os.Stdin, os.Stdout, peers.Open)
	}
	if len(args) == 1 && args[0] == sessions.Command {
		return sessions.Serve(context.WithoutCancel(ctx), os.Stdin, os.Stdout)
	}
	if len(args) == 1 && args[0] == caches.Command {
		return caches.Serve(context.WithoutCancel(ctx), os.Stdin, os.Stdout)
	}
	o, err := parse(args, os.Stderr)
	if errors.Is(err, errHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return o.do(ctx)
}

func (o *options) do(ctx context.Context) error {
	if o.list {
		return list(os.Stdout)
	}
	if o.sessions != nil {
		return o.doSessions(ctx)
	}
	if o.caches != nil {
		return o.doCaches(ctx)
	}
	if info, err := os.Stat(o.doc); o.doc != "" && (err != nil || !info.IsDir()) { //nolint:gosec // the user names it
		return fmt.Errorf("-doc %s is no directory of pages, such as results", o.doc) // before anything is measured
	}
	results, err := o.results(ctx)
	if results == nil || len(results.Cells) == 0 {
		return errors.Join(err, errNothing)
	}
	fmt.Print(report.Text(results))
	if o.out != "" {
		err = errors.Join(err, report.Write(results, o.out))
	}
	if o.doc != "" {
		err = errors.Join(err, report.Document(results, o.doc))
	}
	return errors.Join(err, results.Err())
}
