//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

const night = "/marks/backup/2026-03-01"

// once is a docent whose command adds a line to a file and goes on as script says.
func once(t *testing.T, srv *zktest.Server, file, script string, flags ...string) *exec.Cmd {
	t.Helper()
	args := append(append([]string{"run", "--mark", night}, flags...), "/lock", "--", "sh", "-c", `echo run >> "$0"; `+script, file)
	return docent(t, srv, args...)
}

func runs(t *testing.T, file string) int {
	t.Helper()
	all, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(all), "run")
}

// A second machine that comes late does nothing, and a command that fails leaves no mark.
func TestRunMark(t *testing.T) {
	t.Parallel()
	srv := server(t)
	file := filepath.Join(t.TempDir(), "runs")
	if s := result(t, once(t, srv, file, "exit 7")); s.code != 7 || runs(t, file) != 1 {
		t.Errorf("%+v", s)
	}
	if _, ok := srv.Node(night); ok {
		t.Error("a command that failed left a mark")
	}
	if s := result(t, once(t, srv, file, "true", "--name", "first")); s.code != 0 || s.err != "" || runs(t, file) != 2 {
		t.Errorf("%+v", s)
	}
	mark, ok := srv.Node(night)
	if !ok || !strings.Contains(string(mark.Data), "client=first") {
		t.Errorf("%v, %q", ok, mark.Data)
	}
	if s := result(t, once(t, srv, file, "true")); s.code != 0 || s.err != "" || runs(t, file) != 2 {
		t.Errorf("%+v, %d runs", s, runs(t, file))
	}
	if s := result(t, once(t, srv, file, "true", "-v")); !strings.Contains(s.err, night+" exists") {
		t.Errorf("%+v", s)
	}
}

// The command gets a signal to end, finishes its work and ends with 0: the work is done, and
// the mark says so.
func TestRunMarkAfterASignal(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		srv := server(t)
		cmd := docent(t, srv, "run", "--mark", night, "/lock", "--", "sh", "-c",
			`trap 'exit 0' TERM HUP QUIT; echo begun; while :; do sleep 0.01; done`)
		errs := running(t, cmd)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("%v: exit code %d: %s", sig, cmd.ProcessState.ExitCode(), errs)
		}
		if _, ok := srv.Node(night); !ok {
			t.Errorf("%v: no mark", sig)
		}
	}
}

// If docent is killed at work, the machine that waits does the work.
func TestRunMarkDeath(t *testing.T) {
	t.Parallel()
	srv := server(t)
	file := filepath.Join(t.TempDir(), "runs")
	first := once(t, srv, file, "sleep 60")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return runs(t, file) == 1 })
	second := once(t, srv, file, "true")
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(srv.Children("/lock")) == 2 })
	holder, _ := srv.Node("/lock/" + srv.Children("/lock")[0])
	waiter, _ := srv.Node("/lock/" + srv.Children("/lock")[1])
	if holder.Stat.EphemeralOwner > waiter.Stat.EphemeralOwner { // sessions grow
		holder = waiter
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	srv.ExpireSession(holder.Stat.EphemeralOwner)
	if err := second.Wait(); err != nil || runs(t, file) != 2 {
		t.Errorf("%v, %d runs", err, runs(t, file))
	}
	if _, ok := srv.Node(night); !ok {
		t.Error("no mark")
	}
}

// A loss at work: docent stands in line again and does the work.
func TestRunMarkLoss(t *testing.T) {
	t.Parallel()
	srv := server(t)
	file := filepath.Join(t.TempDir(), "runs")
	cmd := once(t, srv, file, `[ "$(wc -l < "$0")" -gt 1 ] || sleep 60`)
	errs := new(text)
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return runs(t, file) == 1 })
	node, _ := srv.Node("/lock/" + srv.Children("/lock")[0])
	srv.ExpireSession(node.Stat.EphemeralOwner)
	if err := cmd.Wait(); err != nil || runs(t, file) != 2 {
		t.Errorf("%v, %d runs, %s", err, runs(t, file), errs)
	}
}

// The session of a docent that waits ends: it waits again.
func TestRunMarkWaiterLosesItsSession(t *testing.T) {
	t.Parallel()
	srv := server(t)
	hold := acquired(t, connect(t, srv), "/lock")
	file := filepath.Join(t.TempDir(), "runs")
	cmd := once(t, srv, file, "true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var waiter zktest.Node
	waits := func(not int64) func() bool {
		return func() bool {
			for _, name := range srv.Children("/lock") {
				if node, ok := srv.Node("/lock/" + name); ok && "/lock/"+name != hold.Path() && node.Stat.EphemeralOwner != not {
					waiter = node
					return true
				}
			}
			return false
		}
	}
	eventually(t, waits(0))
	srv.ExpireSession(waiter.Stat.EphemeralOwner)
	eventually(t, waits(waiter.Stat.EphemeralOwner))
	if err := hold.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || runs(t, file) != 1 {
		t.Errorf("%v, %d runs", err, runs(t, file))
	}
}

// The answer to the mark is lost: the next look finds it.
func TestRunMarkLostAnswer(t *testing.T) {
	t.Parallel()
	srv := server(t)
	lost := srv.LoseReply(zktest.Match{Op: zktest.OpMulti, Path: night})
	file := filepath.Join(t.TempDir(), "runs")
	if s := result(t, once(t, srv, file, "true")); s.code != 0 || runs(t, file) != 1 || lost.Fired() != 1 {
		t.Errorf("%+v, %d runs, %d lost", s, runs(t, file), lost.Fired())
	}
}

func TestRunMarkMistakes(t *testing.T) {
	t.Parallel()
	srv := server(t)
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"--mark", "relative", "/lock"}, "--mark"},
		{[]string{"--mark", "/lock/done", "/lock"}, "outside of the lock's directory"},
		{[]string{"--mark", "/lock", "/lock"}, "outside of the lock's directory"},
		{[]string{"--mark", "/m", "--shared", "/lock"}, "one holder"},
		{[]string{"--mark", "/m", "--permits", "2", "/lock"}, "one holder"},
	} {
		s := result(t, docent(t, srv, append(append([]string{"run"}, tt.args...), "--", "true")...))
		if s.code != exitUsage || !strings.Contains(s.err, tt.says) {
			t.Errorf("%v: %+v", tt.args, s)
		}
	}
	// A mark that may not be made is no reason to run the command again and again.
	c := connect(t, srv)
	if _, err := c.Create(t.Context(), "/marks/backup", nil, client.WithPersistentParents(), client.ACL(zk.WorldACL(zk.PermRead)...)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "runs")
	if s := result(t, once(t, srv, file, "true")); s.code != exitOwn || !strings.Contains(s.err, "could not be made") || runs(t, file) != 1 {
		t.Errorf("%+v, %d runs", s, runs(t, file))
	}
}
