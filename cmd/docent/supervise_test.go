//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// stubborn is a process that ignores SIGTERM, and leaves its id in the file $0.
const stubborn = `sh -c 'trap "" TERM; echo $$ > "$0"; echo begun; while :; do sleep 0.01; done' "$0" & `

// The command takes most of the grace, and leaves a process that ignores SIGTERM: the grace
// does not begin again for that one.
func TestGraceIsForAll(t *testing.T) {
	t.Parallel()
	srv := server(t)
	pid := filepath.Join(t.TempDir(), "pid")
	const grace, latest = 3 * time.Second, 4500 * time.Millisecond // a second grace ends after 5.5 s
	cmd := docent(t, srv, "run", "--session-timeout", "8s", "--margin", "300ms", "--grace", grace.String(), "/a", "--",
		"sh", "-c", `trap 'sleep 2.5; exit 0' TERM; `+stubborn+`while :; do wait; done`, pid)
	errs := running(t, cmd)
	srv.Ignore(zktest.Match{Session: srv.Sessions()[0].ID, Times: zktest.Always})
	eventually(t, func() bool { return strings.Contains(errs.String(), "SIGTERM, and SIGKILL in") })
	begun := time.Now()
	eventually(t, func() bool { return gonePID(t, pid) })
	if took := time.Since(begun); took > latest {
		t.Errorf("killed %v after SIGTERM, with a grace of %v: %s", took, grace, errs)
	}
	srv.ClearRules() // docent ends its session
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitLost {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), errs)
	}
}

// The command has ended, and what it left is in its grace when the lock is lost: it is killed
// before another client can hold.
func TestLossDuringTheLastGrace(t *testing.T) {
	t.Parallel()
	srv := server(t)
	pid := filepath.Join(t.TempDir(), "pid")
	cmd := docent(t, srv, "run", "--session-timeout", "6s", "--margin", "300ms", "--grace", "1h", "--on-loss", "kill", "/a", "--",
		"sh", "-c", stubborn+`until [ -s "$0" ]; do sleep 0.01; done`, pid)
	errs := running(t, cmd)
	srv.Ignore(zktest.Match{Session: srv.Sessions()[0].ID, Times: zktest.Always})
	next := acquired(t, connect(t, srv, client.WithSessionTimeout(6*time.Second)), "/a")
	dead(t, pid)
	srv.ClearRules()
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitLost {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), errs)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// A request to release reaches the command if its caller wants that.
func TestRunIsAsked(t *testing.T) {
	t.Parallel()
	srv := server(t)
	cmd := docent(t, srv, "run", "--on-ask", "term", "/a", "--", "sh", "-c", `trap 'exit 12' TERM; echo begun; while :; do sleep 0.01; done`)
	running(t, cmd)
	if s := do(t, srv, "ask", "--yes", "/a", "--wait", "20s"); s.code != 0 {
		t.Errorf("%+v", s)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 12 {
		t.Errorf("exit code %d", cmd.ProcessState.ExitCode())
	}
	cmd = docent(t, srv, "run", "/a", "--", "sh", "-c", `trap 'exit 12' TERM; echo begun; while :; do sleep 0.01; done`)
	errs := running(t, cmd)
	if s := do(t, srv, "ask", "--yes", "/a"); s.code != 0 {
		t.Errorf("%+v", s)
	}
	eventually(t, func() bool { return strings.Contains(errs.String(), "asked for") })
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitSignalled+int(syscall.SIGUSR1) {
		t.Errorf("exit code %d", cmd.ProcessState.ExitCode())
	}
}

// Processes that the command leaves while it goes on are reaped.
func TestOrphansAreBuried(t *testing.T) {
	t.Parallel()
	srv := server(t)
	pid := filepath.Join(t.TempDir(), "pid")
	cmd := docent(t, srv, "run", "/a", "--", "sh", "-c", `(sh -c 'echo $$ > "$0"' "$0" &); until [ -s "$0" ]; do sleep 0.01; done; echo begun; while :; do sleep 0.01; done`, pid)
	running(t, cmd)
	eventually(t, func() bool { return gonePID(t, pid) })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}
