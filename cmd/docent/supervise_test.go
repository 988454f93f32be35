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

// What the command leaves in its group is killed before another client can hold, also if
// the command itself has ended by then. The grace does not begin again.
func TestWhatIsLeftAfterALoss(t *testing.T) {
	t.Parallel()
	const stubborn = `sh -c 'trap "" TERM; echo $$ > "$0"; echo begun; while :; do sleep 0.01; done' "$0" & `
	for name, tt := range map[string]struct {
		args  []string
		child string
	}{
		"the command takes most of the grace": {[]string{"--grace", "2s"}, `trap 'sleep 1.5; exit 0' TERM; ` + stubborn + `while :; do wait; done`},
		"the command has ended before":        {[]string{"--grace", "1h", "--on-loss", "kill"}, stubborn + `until [ -s "$0" ]; do sleep 0.01; done`},
	} {
		srv := server(t)
		pid := filepath.Join(t.TempDir(), "pid")
		args := append([]string{"run", "--session-timeout", "6s", "--margin", "300ms"}, tt.args...)
		cmd := docent(t, srv, append(args, "/a", "--", "sh", "-c", tt.child, pid)...)
		errs := running(t, cmd)
		srv.Ignore(zktest.Match{Session: srv.Sessions()[0].ID, Times: zktest.Always})
		next := acquired(t, connect(t, srv, client.WithSessionTimeout(6*time.Second)), "/a")
		dead(t, pid)
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitLost {
			t.Errorf("%s: exit code %d: %s", name, cmd.ProcessState.ExitCode(), errs)
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
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

// Processes that the command leaves while it goes on are buried.
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
