package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"time"

	"github.com/spf13/cobra"

	"github.com/docent-go/docent/client"
)

// finding is one line of `docent check`.
type finding struct {
	Check  string `col:"CHECK"  json:"check"`
	Result string `col:"RESULT" json:"result"` // "ok", "warn" or "fail"
	Detail string `col:"DETAIL" json:"detail"`
}

const (
	good = "ok"
	warn = "warn"
	fail = "fail"
)

// level colors the findings that an operator has to look at.
func (f finding) level() level {
	switch f.Result {
	case fail:
		return bad
	case warn:
		return doubtful
	}
	return usual
}

func newCheck(to *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Check whether this host can lock: servers, rights, timeouts, counters",
		Long: `Check connects to the ensemble and to each server alone. It says what the servers are,
whether the connection is encrypted and until when the certificates are valid, what session
timeout the servers grant, and whether a lock is safe with it. With DIR it checks the
rights there, without leaving a node, and the counters of the locks at or below it.

It exits with 1 if a check fails.`,
		Args: maybeDir, ValidArgsFunction: to.completePath(),
	}
	form := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := to.check(cmd, args)
		if err != nil {
			return err
		}
		for i := range all {
			all[i].Detail = flagNames.Replace(all[i].Detail)
		}
		if err := write(cmd.OutOrStdout(), *form, all); err != nil {
			return err
		}
		for _, one := range all {
			if one.Result == fail {
				return &exitError{exitFailure, errors.New("a check has failed")}
			}
		}
		return nil
	}
	return cmd
}

// check makes all findings. Its error is a mistake in the command line.
func (t *target) check(cmd *cobra.Command, dir []string) ([]finding, error) {
	ctx := cmd.Context()
	c, err := t.dial(cmd)
	var usage *exitError
	switch {
	case errors.As(err, &usage):
		return nil, err
	case err != nil:
		return []finding{{"ensemble", fail, err.Error()}}, nil
	}
	defer c.Close() //nolint:errcheck // nothing was changed
	all := []finding{{"ensemble", good, "connected to " + t.servers}}
	if root := t.chroot(); root != "" {
		all = append(all, finding{"chroot", good, root + " exists; paths are below it"})
	}
	all = append(all, t.each(cmd, c)...)
	all = append(all, t.kind(ctx, c), t.encryption(ctx, c), t.loginFinding(ctx, c))
	if s, err := c.Session(ctx); err != nil {
		all = append(all, finding{"session timeout", fail, err.Error()})
	} else {
		all = append(all, t.granted(s.Timeout()), t.lease(cmd, c, s.Timeout()))
	}
	if len(dir) == 1 {
		all = append(all, rights(ctx, c, dir[0]), counters(ctx, c, dir[0], cmd.ErrOrStderr()))
	}
	return all, nil
}

// kind says what the servers are.
func (t *target) kind(ctx context.Context, c *client.Client) finding {
	product, err := recognised(ctx, c)
	f := finding{"product", good, product}
	if err != nil {
		return finding{f.Check, fail, err.Error()}
	}
	for _, server := range c.Servers() {
		if what := t.about(ctx, server); what != "" {
			f.Detail += " " + what
			break
		}
	}
	if product != "Apache ZooKeeper" {
		f.Result = warn
		f.Detail += "; on it every lock is lost with the connection (docs/servers.md)"
	}
	return f
}

// recognised waits until the client knows what the servers are. The client asks them after
// the handshake, beside the first requests of its callers.
func recognised(ctx context.Context, c *client.Client) (string, error) {
	for {
		if _, _, err := c.Exists(ctx, "/"); err != nil {
			return "", err
		}
		if product := c.Product(); product != "" {
			return product, nil
		}
	}
}

// granted says what session timeout the servers grant. A timeout that no lock is safe
// with has refused the connection before.
func (t *target) granted(timeout time.Duration) finding {
	f := finding{"session timeout", good, fmt.Sprintf("%v: so long a crashed holder keeps its lock", timeout)}
	if timeout != t.timeout {
		f.Result = warn
		f.Detail += fmt.Sprintf("; %v was asked for (--session-timeout), and the servers' minSessionTimeout and maxSessionTimeout allow what they grant", t.timeout)
	}
	return f
}

// rights tries a create in dir in a transaction that another part makes fail, so that
// nothing is changed.
func rights(ctx context.Context, c *client.Client, dir string) finding {
	f := finding{"rights in " + dir, good, "may list, create and delete"}
	exists, _, err := c.Exists(ctx, dir)
	if err == nil && !exists {
		return finding{f.Check, warn, "does not exist; the first acquire makes it, if the rights above allow that"}
	}
	if err == nil {
		_, _, err = c.Children(ctx, dir)
	}
	if err != nil {
		return finding{f.Check, fail, "list: " + err.Error()}
	}
	probe := path.Join(dir, "_docent-check")
	const never = math.MaxInt32 // a version that no node has
	_, err = c.Multi(ctx, client.CreateOp(probe, nil, client.Ephemeral()), client.DeleteOp(probe, client.AnyVersion), client.CheckOp("/", never))
	var multi *client.MultiError
	switch {
	case errors.As(err, &multi) && multi.Index == 2: // the check that must fail
		return f
	case err == nil:
		return finding{f.Check, fail, "the servers applied a transaction with a check that must fail"}
	case errors.As(err, &multi) && multi.Index == 1:
		return finding{f.Check, fail, "delete: " + err.Error()}
	}
	return finding{f.Check, fail, "create: " + err.Error()}
}

// counters looks for locks whose directory has used up much of its sequence numbers.
func counters(ctx context.Context, c *client.Client, dir string, warnings io.Writer) finding {
	f := finding{"counters below " + dir, good, ""}
	var locks, unlisted int
	var worst int64
	err := walk(ctx, c, dir, 8, func(l lock) error {
		at := l.path
		if l.kind == kindSemaphore {
			at = path.Join(at, "locks")
		}
		there, stat, err := c.Exists(ctx, at)
		if err != nil || !there {
			return err
		}
		locks++
		used := int64(uint32(stat.Cversion)+uint32(stat.NumChildren)) / 2 //nolint:gosec // modulo 2^32 on purpose
		if used > worst {
			worst = used
			f.Detail = fmt.Sprintf("; the most used is %s with %d of %d numbers", at, used, math.MaxInt32)
		}
		return nil
	}, func(dir string) {
		unlisted++
		_, _ = fmt.Fprintf(warnings, "docent: may not list %s\n", shown(dir))
	})
	if err != nil {
		return finding{f.Check, fail, err.Error()}
	}
	f.Detail = counted(locks, "lock", "locks") + f.Detail
	if unlisted > 0 {
		f.Result = warn
		f.Detail += "; " + counted(unlisted, "directory", "directories") + " could not be listed: no lock there is counted"
	}
	if worst > math.MaxInt32/2 {
		f.Result = warn
		f.Detail += ": near the end locks are refused. Stop every client of it, delete the directory, start again"
	}
	return f
}
