// Docent is the command of the library. It runs programs under a lock, shows who
// holds the locks of an ensemble, and helps when a lock is stuck.
//
//	docent run /locks/nightly -- backup.sh     # one at a time, on all hosts
//	docent elect /leaders/indexer -- indexer   # one leads, the others wait
//	docent ls /locks                           # locks below a directory
//	docent queue /locks/nightly                # holders and waiters, in order
//	docent watch /config                       # nodes, and their changes as they come
//	docent services ls orders --base /services # instances of a service
//	docent serve                               # a ZooKeeper for development
//
// `docent help` lists all commands. Data goes to standard output, all else to standard
// error.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := notified(context.Background())
	code := execute(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// notified returns a context that ends with the first signal to end, which is its cause.
func notified(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() { // ends with the context
		select {
		case s := <-signals:
			if sig, ok := s.(syscall.Signal); ok {
				cancel(signalled{sig})
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// execute runs the command that args name, and returns the exit code.
func execute(ctx context.Context, args []string, io streams) int {
	root := newRoot(io)
	root.SetArgs(args)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	var exit *exitError
	switch {
	case !errors.As(err, &exit):
		exit = &exitError{exitFailure, err}
	case exit.code == exitUsage:
		exit = &exitError{exitUsage, fmt.Errorf("%w\nTry: %s --help", err, ran.CommandPath())}
	}
	if exit.err != nil {
		_, _ = fmt.Fprintln(io.err, "docent:", flagNames.Replace(exit.err.Error()))
	}
	return exit.code
}

// newRoot returns the command with all its subcommands.
func newRoot(io streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "docent",
		Short: "Locks on ZooKeeper: run programs under them, see who holds them, help when one is stuck",
		Long: `Docent runs programs under locks on ZooKeeper, shows who holds the locks, and helps
when one is stuck. It knows the locks of Docent and of Apache Curator.

Every flag of the connection can also be an environment variable (--tls-ca is
DOCENT_TLS_CA) or a line of the file that --config names (DOCENT_TLS_CA=/etc/ca.pem).
A flag comes before a variable, and a variable before the file.`,
		SilenceUsage: true, SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError("name a command")
			}
			return usageError("unknown command %q", args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil }, // Args has refused before
	}
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError("%w", err) })
	to := newTarget(root.PersistentFlags())
	root.AddCommand(
		newRun(to, io), newElect(to, io), newList(to), newQueue(to), newWho(to), newTop(to, io),
		newAsk(to, io), newEvict(to, io), newDeadlocks(to), newWatch(to), newServices(to, io), newUI(to),
		newGet(to), newSet(to), newCreate(to), newRemove(to, io), newCheck(to), newServe(to))
	return root
}
