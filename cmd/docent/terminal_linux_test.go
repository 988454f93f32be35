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
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
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

// screenOf is a top on a terminal of its own, and what is on its screen.
type screenOf struct {
	*testing.T

	master, slave *os.File
	cmd           *exec.Cmd
	mu            sync.Mutex
	text          string // since the cursor went home
}

func topOn(t *testing.T, srv *zktest.Server, width, height int, args ...string) *screenOf {
	t.Helper()
	master, slave := pty(t)
	s := &screenOf{T: t, master: master, slave: slave}
	s.resize(width, height)
	s.cmd = docent(t, srv, append([]string{"top"}, args...)...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = slave, slave, slave
	s.cmd.Env = append(s.cmd.Env, "TERM=xterm")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(s.cmd) })
	go func() { // ends with the terminal
		buf := make([]byte, 1<<16)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.text += string(buf[:n])
			if i := strings.LastIndex(s.text, "\x1b[H"); i >= 0 {
				s.text = s.text[i:]
			}
			s.mu.Unlock()
		}
	}()
	return s
}

func (s *screenOf) resize(width, height int) {
	s.Helper()
	if err := unix.IoctlSetWinsize(int(s.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(height), Col: uint16(width)}); err != nil {
		s.Fatal(err)
	}
}

func (s *screenOf) press(keys string) {
	s.Helper()
	if _, err := io.WriteString(s.master, keys); err != nil {
		s.Fatal(err)
	}
}

// shows waits until a whole picture has each of the texts, and none of those behind "not".
func (s *screenOf) shows(texts ...string) string {
	s.Helper()
	var now string
	eventually(s.T, func() bool {
		s.mu.Lock()
		now = s.text
		s.mu.Unlock()
		ok := strings.HasSuffix(now, "\x1b[J")
		for _, text := range texts {
			no, isNo := strings.CutPrefix(text, "not ")
			ok = ok && strings.Contains(now, no) != isNo
		}
		return ok
	})
	return now
}

// Top shows as many locks as the terminal has room for, and says how many it leaves out. It
// follows the size of the terminal, and takes keys.
func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	srv := server(t)
	c := connect(t, srv, client.WithName("billing"))
	for i := range 59 {
		acquired(t, c, fmt.Sprintf("/l%02d", i))
	}
	stuck := acquired(t, c, "/stuck")
	waiting(t, c, "/stuck")
	s := topOn(t, srv, 80, 24)
	text := s.shows("60 locks", "/stuck", "and 41 more", "billing", "q quit")
	if lines := strings.Count(text, "\n") + 1; lines > 24 {
		t.Errorf("%d lines: %q", lines, text)
	}
	s.resize(100, 50)
	s.shows("and 15 more")
	s.resize(40, 10)
	s.shows("/stuck", "and 55 more")
	s.resize(160, 24)
	s.press("\r")
	s.shows("/stuck, mutex", "holds", "waits", filepath.Base(stuck.Path()))
	s.press("a")
	s.shows("y/n: ask the holder of /stuck to release")
	s.press("y")
	s.shows("asked /stuck/")
	<-stuck.Revoked()
	s.press("q")
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("after q: %v", err)
	}
}

// Without a connection, or an answer, the screen says so within 5 s. It comes back by itself, also
// with another session.
func TestTopOfAServerThatIsGone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lose, find func(*zktest.Server)
		word       string
	}{
		"killed": {(*zktest.Server).Stop, (*zktest.Server).Resume, "no connection since "},
		"frozen": {(*zktest.Server).Freeze, (*zktest.Server).Thaw, " since "},
		"session": {
			func(srv *zktest.Server) {
				all := srv.Sessions()
				srv.Stop()
				for _, one := range all {
					srv.ExpireSession(one.ID)
				}
			}, (*zktest.Server).Resume, "no connection since ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			acquired(t, connect(t, srv), "/held")
			s := topOn(t, srv, 80, 24)
			s.shows("/held", "not since")
			from := time.Now()
			tt.lose(srv)
			s.shows("/held", tt.word, "seen at")
			if took := time.Since(from); took > 5*time.Second {
				t.Errorf("it said so after %v", took)
			}
			tt.find(srv)
			s.shows("not since", "q quit")
		})
	}
}
