package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// pty returns both ends of a pseudo-terminal.
func pty(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	return master, slave
}

// onTerminal runs a docent whose output goes to a terminal, and returns what it writes.
func onTerminal(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	master, slave := pty(t)
	cmd.Stdout = slave
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	var out bytes.Buffer
	_, _ = io.Copy(&out, master) // ends with an error when the other end is closed
	return out.String()
}

// Tables have colors on a terminal, unless NO_COLOR is set.
func TestColors(t *testing.T) {
	t.Parallel()
	srv := server(t)
	for _, tt := range []struct {
		env    string
		colors bool
	}{
		{"TERM=xterm", true},
		{"NO_COLOR=1", false},
		{"NO_COLOR=", true},
		{"TERM=dumb", false},
	} {
		cmd := docent(t, srv, "check", "--session-timeout", "6s")
		cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR=", tt.env)
		out := onTerminal(t, cmd)
		if got := strings.Contains(out, "\x1b[33m"); got != tt.colors || !strings.Contains(out, "warn") {
			t.Errorf("%s: %q", tt.env, out)
		}
	}
	if s := do(t, srv, "check", "--session-timeout", "6s"); strings.Contains(s.out, "\x1b") {
		t.Errorf("not on a terminal: %q", s.out)
	}
}

// Evict and ask do something after a yes alone.
func TestAYesIsAskedFor(t *testing.T) {
	t.Parallel()
	srv := server(t)
	hold := acquired(t, connect(t, srv), "/a")
	t.Cleanup(func() { _ = hold.Close() })
	node := filepath.Base(hold.Path())
	for _, tt := range []struct {
		args []string
		said string
		code int
	}{
		{[]string{"ask", "/a"}, "no\n", exitFailure},
		{[]string{"evict", "/a", node}, "y\n", exitFailure},
		{[]string{"evict", "/a", node}, "yes\n", 0},
	} {
		if got, _ := srv.Node(hold.Path()); strings.Contains(string(got.Data), "REVOKE") || hold.Err() != nil {
			t.Fatalf("before %v: %q, %v", tt.args, got.Data, hold.Err())
		}
		master, slave := pty(t)
		if _, err := io.WriteString(master, tt.said); err != nil {
			t.Fatal(err)
		}
		cmd := docent(t, srv, tt.args...)
		cmd.Stdin, cmd.Env = slave, append(cmd.Env, "TERM=xterm")
		s := result(t, cmd)
		if s.code != tt.code || !strings.Contains(s.err, node) || !strings.Contains(s.err, "Type yes") || s.out != "" {
			t.Errorf("%v, %q: %+v", tt.args, tt.said, s)
		}
	}
	<-hold.Context().Done()
}

// A command that cannot be started leaves the terminal to the group that docent is of.
func TestRunLeavesTheTerminal(t *testing.T) {
	t.Parallel()
	srv := server(t)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	master, slave := pty(t)
	if _, err := io.WriteString(master, "said\n"); err != nil {
		t.Fatal(err)
	}
	run := docent(t, srv, "run", "/a", "--", script)
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `"$@"; code=$?; read line; echo "$code $line"`, "sh"}, run.Args...)...)
	cmd.Env, cmd.Stdin = slices.Concat(run.Env, []string{"TERM=xterm"}), slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if s := result(t, cmd); s.out != fmt.Sprintf("%d said\n", exitNotRun) {
		t.Errorf("%+v", s)
	}
}

// Top shows as many locks as the terminal has room for, and says how many it leaves out.
func TestTopFits(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv)
	for i := range 40 {
		acquired(t, c, fmt.Sprintf("/l%02d", i))
	}
	waiting(t, c, "/l39")
	master, slave := pty(t)
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	cmd := docent(t, srv, "top", "--count", "1")
	cmd.Stdout = slave
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	var out bytes.Buffer
	_, _ = io.Copy(&out, master) // ends with an error when the other end is closed
	if text := out.String(); strings.Count(text, "\n") > 23 || !strings.Contains(text, "/l39") || !strings.Contains(text, "and 21 more: docent ls /") {
		t.Errorf("%d lines: %s", strings.Count(text, "\n"), text)
	}
}
