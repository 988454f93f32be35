//go:build unix

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/recipes"
)

// runJob is a `docent run`.
type runJob struct {
	job

	shared, exclusive bool
	permits           int
}

func newRun(to *target, io streams) *cobra.Command {
	j := &runJob{job: job{to: to, io: io}}
	cmd := &cobra.Command{
		Use:   "run PATH -- COMMAND [ARGUMENT...]",
		Short: "Run a command while a lock is held",
		Long: `Run acquires the lock on PATH, runs the command, and releases the lock when the command
and what it left of its process group have ended.

The lock is a mutex (Curator: InterProcessMutex). With --shared and --exclusive it is the
read and the write half of a read/write lock, and with --permits one permit of a
semaphore with so many permits. All programs must use one kind on a path.

If the lock is lost, the command must end before another client can hold the lock:

  - If the servers do not answer, the end is known in advance. The command's process
    group gets SIGTERM, and --grace later SIGKILL, still before the lock can be granted
    to another client.
  - If an operator or a server has ended the lock (node deleted, session killed), docent
    learns it after the fact, and kills at once.

With --on-loss kill there is no SIGTERM. With --on-loss warn the command goes on, and must
itself do what keeps its late writes harmless (DOCENT_TOKEN).

With --mark the work is done once, for example once a night. Under the lock docent looks for
the node. If the node exists, docent exits with 0, and the command does not run (-v says
so). If the command ends with 0, docent makes the node, and only while it holds the lock. If
the lock is lost before, docent stands in line again and looks again. If the machine dies
between the work and the mark, another machine does the work again.

If docent had to wait, the command begins --settle after the other holder has gone: one
that was evicted, or whose session was killed, hears of that only then.

If another client asks for the release (docent ask), the command goes on. With --on-ask
term its process group gets SIGTERM, and the lock is released when it has ended.

SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed to the command's process
group. While docent waits for the lock, such a signal makes it leave the queue and exit.

The command finds in its environment: DOCENT_PATH, DOCENT_NODE, DOCENT_SESSION,
DOCENT_TOKEN (it grows with every hold of the lock: let your storage refuse a smaller one
than the greatest it has seen) and DOCENT_DEADLINE_UNIX (seconds; no other client holds
before, as far as was known when the command began).

Exit codes: that of the command; 128+n if signal n ended it; 123 if the lock was lost
(unless the command had failed before docent ended it); 124 if the lock was not obtained (-E changes that);
125 if docent failed; 126 if the command cannot be run; 127 if it was not found; 2 for
mistakes in the command line.`,
		Example: `  docent run --mark /marks/backup/$(date -u +%F) /locks/backup -- /usr/local/bin/backup.sh
  docent run --try /locks/thumbnails -- make thumbnails
  docent run --permits 3 /locks/encoders -- ffmpeg ...`,
		Args: pathAndCommand, ValidArgsFunction: to.completeCommand(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := j.kinds(cmd); err != nil {
				return err
			}
			if err := j.checkMark(args[0]); err != nil {
				return err
			}
			return j.run(cmd, j.open(args[0]), args[1:])
		},
	}
	j.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&j.shared, "shared", false, "take the read half of a read/write lock")
	flags.BoolVar(&j.exclusive, "exclusive", false, "take the write half of a read/write lock")
	flags.StringVar(&j.mark, "mark", "", "do the work once: do nothing if this `node` exists, make it when the command ends with 0")
	flags.IntVar(&j.permits, "permits", 0, "take a permit of a semaphore with so many")
	return cmd
}

// kinds refuses flags that name more than one lock.
func (j *runJob) kinds(cmd *cobra.Command) error {
	kinds := 0
	for _, set := range []bool{j.shared, j.exclusive, cmd.Flags().Changed("permits")} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return usageError("--shared, --exclusive and --permits are different locks; take one")
	case cmd.Flags().Changed("permits") && j.permits < 1:
		return usageError("--permits %d: give 1 or more, or leave it out for a mutex", j.permits)
	}
	return nil
}

// open prepares the lock that the flags name.
func (j *runJob) open(at string) opener {
	return func(c *client.Client) (taker, error) {
		switch {
		case j.permits > 0:
			s, err := recipes.NewInterProcessSemaphoreV2(c, at, j.permits)
			if err != nil {
				return nil, err
			}
			return either(one(s.Acquire), one(s.TryAcquire), func(l *recipes.Lease) *recipes.Hold { return l.Hold }), nil
		case j.shared || j.exclusive:
			l, err := recipes.NewInterProcessReadWriteLock(c, at)
			if err != nil {
				return nil, err
			}
			if j.shared {
				return either(l.ReadLock().Acquire, l.ReadLock().TryAcquire, itself), nil
			}
			return either(l.WriteLock().Acquire, l.WriteLock().TryAcquire, func(h *recipes.WriteHold) *recipes.Hold { return h.Hold }), nil
		}
		m, err := recipes.NewInterProcessMutex(c, at)
		if err != nil {
			return nil, err
		}
		return either(m.Acquire, m.TryAcquire, itself), nil
	}
}

func itself(h *recipes.Hold) *recipes.Hold { return h }

// one asks a semaphore for one permit.
func one(take func(context.Context, int) (*recipes.Lease, error)) func(context.Context) (*recipes.Lease, error) {
	return func(ctx context.Context) (*recipes.Lease, error) { return take(ctx, 1) }
}
