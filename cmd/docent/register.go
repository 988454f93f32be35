//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/cmd/docent/internal/child"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/nodes"
)

// registerJob is a `docent services register`.
type registerJob struct {
	job
	*registry

	instance discovery.ServiceInstance
	metadata []string
	probe    bool
}

func newServicesRegister(r *registry, io streams) *cobra.Command {
	j := &registerJob{job: job{to: r.to, io: io}, registry: r}
	cmd := &cobra.Command{
		Use:   "register SERVICE -- COMMAND [ARGUMENT...]",
		Short: "Register an instance while a command runs",
		Long: `Register starts the command, waits until it listens, and registers the instance. When the command has ended,
or docent gets a signal to end, it removes the instance; then it passes the signal on.

It waits until somebody accepts a connection at the address and port. With --probe=false it registers at
once: for a command that does not listen there for this host.

If the session is lost, docent registers the instance again; the command goes on. If docent is killed, so is the
command, and the instance goes with the session, after --session-timeout. A node of another session at the same
place is left alone: docent says so, and waits until that is gone.

SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed to the command's process group. The command finds in its
environment DOCENT_SERVICE.

Exit codes: that of the command; 128+n if signal n ended it; 125 if docent failed, as when a server refuses the instance;
126 if the command cannot be run; 127 if it was not found; 2 for mistakes in the command line.`,
		Example: `  docent services register orders --base /services --port 8080 -- ./orders --listen :8080
  docent services register jobs --codec nerve --base /scrape --address 10.0.0.7 --port 9100 -- node_exporter`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case dash != 1:
				return usageError("the arguments are SERVICE -- COMMAND [ARGUMENT...]; the two dashes are needed")
			case len(args) < 2:
				return usageError("missing argument COMMAND behind the dashes")
			case j.instance.Port == 0 && j.instance.TLSPort == 0 && len(j.instance.Endpoints) == 0:
				return usageError("--port is missing: where does the command listen?")
			case j.grace < 0:
				return usageError("--grace is not negative")
			}
			return r.check()
		},
		RunE: func(cmd *cobra.Command, args []string) error { return j.run(cmd, args[0], args[1:]) },
	}
	flags := cmd.Flags()
	i := &j.instance
	flags.StringVar(&i.Address, "address", "", "`host` that callers use; by default the address of this host as the ZooKeeper servers see it")
	flags.IntVar(&i.Port, "port", 0, "port where the command listens")
	flags.IntVar(&i.TLSPort, "tls-port", 0, "port where it speaks TLS")
	flags.StringVar(&i.ID, "id", "", "name of the instance; by default a UUID, or address and port, as the layout has it")
	flags.StringVar(&i.Zone, "zone", "", "where it is")
	flags.StringVar(&i.Version, "version", "", "version of the program")
	flags.IntVar(&i.Weight, "weight", 0, "how many calls it wants, relative to others")
	flags.StringArrayVar(&j.metadata, "metadata", nil, "`key=value`; may be given several times")
	flags.StringArrayVar(&i.Endpoints, "endpoint", nil, "a URL, or name=host:port; may be given several times")
	flags.BoolVar(&j.probe, "probe", true, "wait until the command listens")
	flags.DurationVar(&j.grace, "grace", defaultGrace, "time between SIGTERM and SIGKILL, for what the command leaves behind, and for a command whose instance is refused")
	return cmd
}

// run runs the command while the instance is registered.
func (j *registerJob) run(cmd *cobra.Command, service string, command []string) error {
	i := j.instance
	i.Service = service
	for _, pair := range j.metadata {
		key, value, is := strings.Cut(pair, "=")
		if !is || key == "" {
			return usageError("--metadata %s: give key=value", pair)
		}
		if i.Metadata == nil {
			i.Metadata = map[string]string{}
		}
		i.Metadata[key] = value
	}
	program, err := lookup(command[0])
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passed...)
	defer signal.Stop(signals)
	ctx := cmd.Context()
	c, err := j.job.to.dial(cmd)
	if err != nil {
		return interrupted(ctx, err)
	}
	defer c.Close() //nolint:errcheck // the instance is removed before
	d, err := j.services(c)
	if err != nil {
		return err
	}
	if i.Address == "" && len(i.Endpoints) == 0 {
		if i.Address, err = discovery.HostAddress(ctx, c); err != nil {
			return interrupted(ctx, fmt.Errorf("%w (--address)", err))
		}
	}
	registration, err := d.NewRegistration(i)
	if err != nil {
		return usageError("%w", err)
	}
	running, err := child.Start(program, command, append(os.Environ(), "DOCENT_SERVICE="+service), j.io.in, terminal(j.io.in), j.io.out, j.io.err)
	if err != nil {
		return &exitError{exitNotRun, err}
	}
	k := &keeper{registerJob: j, registration: registration, child: running, leave: make(chan struct{}), left: make(chan struct{}), refused: make(chan struct{})}
	go k.keep(context.WithoutCancel(ctx)) // ends with the command, or with leave
	j.signals = make(chan os.Signal, cap(signals))
	over := make(chan struct{})
	defer close(over)
	go k.pass(signals, over) // ends with over
	(&warden{job: &j.job, child: running, end: k.refused}).supervise()
	<-k.left
	switch code := running.Code(); {
	case k.err != nil: // it was said
		return &exitError{exitOwn, nil}
	case code != 0:
		return &exitError{code, nil}
	}
	return nil
}

// interrupted is the error of what a signal may have ended.
func interrupted(ctx context.Context, err error) error {
	var stop signalled
	if errors.As(context.Cause(ctx), &stop) {
		return &exitError{exitSignalled + int(stop.Signal), stop}
	}
	return ownFailure(err)
}

// keeper registers an instance while its command runs.
type keeper struct {
	*registerJob

	registration *discovery.Registration
	child        *child.Child
	leave        chan struct{} // closed by the first signal to end
	left         chan struct{} // closed when the instance is gone
	refused      chan struct{} // closed when the instance cannot be registered
	err          error         // why it could not be registered; read after left
}

// keep registers the instance, and removes it when the command ends or shall end.
func (k *keeper) keep(ctx context.Context) {
	defer close(k.left)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the command, with leave, or with ctx
		select {
		case <-k.child.Done:
		case <-k.leave:
		case <-ctx.Done():
		}
		cancel()
	}()
	if k.probe && !k.listens(ctx) {
		return
	}
	go func() { // ends with ctx
		for now := range k.registration.Changes(ctx) {
			if now.State == nodes.Foreign {
				say(k.io.err, "not registered yet: %v", now.Err)
			}
		}
	}()
	err := k.registration.Start(ctx)
	if err != nil && ctx.Err() == nil {
		k.err = err
		say(k.io.err, "SIGTERM, and SIGKILL in %v: %v", k.grace, err)
		close(k.refused)
	}
	if err == nil {
		if k.job.to.verbose {
			i := k.registration.Instance()
			say(k.io.err, "registered %s: %s", k.registration.Status().Path, &i)
		}
		<-ctx.Done()
	}
	if err := k.registration.Close(); err != nil && !errors.Is(err, client.ErrClosed) {
		say(k.io.err, "the instance is removed with the session: %v", err)
	}
}

// probePause is the time between two tries to connect to the command.
const probePause = 50 * time.Millisecond

// listens waits until the command accepts a connection, and reports whether it did.
func (k *keeper) listens(ctx context.Context) bool {
	i := k.registration.Instance()
	port := i.Port
	if port == 0 {
		port = i.TLSPort
	}
	if i.Address == "" || port == 0 {
		return true // an endpoint says where
	}
	at := net.JoinHostPort(i.Address, strconv.Itoa(port))
	told := time.Now().Add(k.job.to.connect)
	for ctx.Err() == nil {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", at)
		if err == nil {
			_ = conn.Close()
			return true
		}
		if !told.IsZero() && time.Now().After(told) {
			told = time.Time{}
			say(k.io.err, "nobody listens at %s yet, so the instance is not registered (--address, --port, --probe=false): %v", at, err)
		}
		_ = sleep(ctx, probePause)
	}
	return false
}

// pass passes signals on. Before the first one to end it lets the instance leave.
func (k *keeper) pass(signals <-chan os.Signal, over <-chan struct{}) {
	leave := k.leave
	for {
		select {
		case s := <-signals:
			if leave != nil && s != syscall.SIGUSR1 && s != syscall.SIGUSR2 {
				close(leave)
				leave = nil
				<-k.left
			}
			k.signals <- s
		case <-over:
			return
		}
	}
}
