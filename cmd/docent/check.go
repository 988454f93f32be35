package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"path"
	"strings"
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

func newCheck(to *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Check whether this host can lock: servers, rights, timeouts, counters",
		Long: `Check connects to the ensemble and to each server alone, says what the servers are and what
session timeout they grant, and whether a lock is safe with it. With DIR it checks the
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
	all = append(all, t.each(cmd)...)
	all = append(all, t.kind(ctx, c), t.granted(ctx, c))
	if len(dir) == 1 {
		all = append(all, rights(ctx, c, dir[0]), counters(ctx, c, dir[0], cmd.ErrOrStderr()))
	}
	return all, nil
}

// each connects to one server after the other.
func (t *target) each(cmd *cobra.Command) (all []finding) {
	list, chroot := t.servers, ""
	if i := strings.IndexByte(t.servers, '/'); i >= 0 {
		list, chroot = t.servers[:i], t.servers[i:]
	}
	servers := strings.Split(list, ",")
	if len(servers) == 1 {
		return nil
	}
	for _, server := range servers {
		one := *t
		one.servers = strings.TrimSpace(server) + chroot
		f := finding{"server " + one.servers, good, "answers"}
		if c, err := one.dial(cmd); err != nil {
			f.Result, f.Detail = fail, err.Error()
		} else {
			_ = c.Close()
		}
		all = append(all, f)
	}
	return all
}

// kind says what the servers are.
func (t *target) kind(ctx context.Context, c *client.Client) finding {
	product, err := recognised(ctx, c)
	f := finding{"product", good, product}
	if err != nil {
		return finding{f.Check, fail, err.Error()}
	}
	if version := t.version(ctx, c.Servers()); version != "" {
		f.Detail += " " + version
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

// version asks the servers with the command srvr, which they may not be configured to
// answer.
func (t *target) version(ctx context.Context, servers []string) string {
	for _, server := range servers {
		var d net.Dialer
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		conn, err := d.DialContext(ctx, "tcp", server)
		cancel()
		if err != nil {
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
		_, _ = conn.Write([]byte("srvr"))
		text, _ := io.ReadAll(io.LimitReader(conn, 4096))
		_ = conn.Close()
		if _, rest, ok := strings.Cut(string(text), "Zookeeper version: "); ok {
			line, _, _ := strings.Cut(rest, "\n")
			version, _, _ := strings.Cut(line, ",")
			return version
		}
	}
	return ""
}

// granted says what session timeout the servers grant. A timeout that no lock is safe
// with has refused the connection before.
func (t *target) granted(ctx context.Context, c *client.Client) finding {
	s, err := c.Session(ctx)
	if err != nil {
		return finding{"session timeout", fail, err.Error()}
	}
	f := finding{"session timeout", good, fmt.Sprintf("%v: so long a crashed holder keeps its lock", s.Timeout())}
	if s.Timeout() != t.timeout {
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
	var locks int
	var worst int64
	err := walk(ctx, c, dir, 8, func(l lock) error {
		at := l.path
		if l.kind == kindSemaphore {
			at = path.Join(at, "locks")
		}
		_, stat, err := c.Exists(ctx, at)
		if err != nil || stat == nil {
			return err
		}
		locks++
		used := int64(uint32(stat.Cversion)+uint32(stat.NumChildren)) / 2 //nolint:gosec // modulo 2^32 on purpose
		if used > worst {
			worst = used
			f.Detail = fmt.Sprintf("; the most used is %s with %d of %d numbers", at, used, math.MaxInt32)
		}
		return nil
	}, func(dir string) { _, _ = fmt.Fprintf(warnings, "docent: may not list %s\n", dir) })
	if err != nil {
		return finding{f.Check, fail, err.Error()}
	}
	f.Detail = fmt.Sprintf("%d locks%s", locks, f.Detail)
	if worst > math.MaxInt32/2 {
		f.Result = warn
		f.Detail += ": near the end locks are refused. Stop every client of it, delete the directory, start again"
	}
	return f
}
