//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/zktest"
)

// result runs a docent to its end.
func result(t *testing.T, cmd *exec.Cmd) said {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return said{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

func TestRunExitCodes(t *testing.T) {
	t.Parallel()
	srv := server(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	acquired(t, connect(t, srv), "/held")
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"/a", "--", "true"}, 0, ""},
		{[]string{"/a", "--", "sh", "-c", "exit 7"}, 7, ""},
		{[]string{"/a", "--", "sh", "-c", "kill -9 $$"}, exitSignalled + 9, ""},
		{[]string{"/a", "--", "no-such-command"}, exitNotFound, "no-such-command"},
		{[]string{"/a", "--", "/no/such/command"}, exitNotFound, "/no/such/command"},
		{[]string{"/a", "--", plain}, exitNotRun, "permission denied"},
		{[]string{"--try", "/held", "--", "true"}, exitConflict, "not free"},
		{[]string{"--timeout", "1s", "/held", "--", "true"}, exitConflict, "waiting behind"},
		{[]string{"--try", "-E", "0", "/held", "--", "true"}, 0, "not free"},
		{[]string{"--shared", "/held", "--", "true"}, exitOwn, "held"},
		{[]string{"relative", "--", "true"}, exitUsage, `starts with "/"`},
		{[]string{"--shared", "/rw", "--", "true"}, 0, ""},
		{[]string{"--exclusive", "/rw", "--", "true"}, 0, ""},
		{[]string{"--permits", "2", "/sem", "--", "true"}, 0, ""},
	} {
		s := result(t, docent(t, srv, append([]string{"run"}, tt.args...)...))
		if s.code != tt.code || !strings.Contains(s.err, tt.says) || tt.says == "" && s.err != "" {
			t.Errorf("%v: %+v", tt.args, s)
		}
	}
	waiting(t, connect(t, srv), "/held")
	if s := result(t, docent(t, srv, "run", "--timeout", "1s", "/held", "--", "true")); s.code != exitConflict || !strings.Contains(s.err, "; docent who /held says who holds") {
		t.Errorf("behind a waiter: %+v", s)
	}
	s := result(t, docent(t, srv, "run", "--servers", "127.0.0.1:1", "--connect-timeout", "100ms", "/a", "--", "true"))
	if s.code != exitOwn || !strings.Contains(s.err, "refused") {
		t.Errorf("no server: %+v", s)
	}
}

func TestRunEnvironmentAndStreams(t *testing.T) {
	t.Parallel()
	srv := server(t)
	cmd := docent(t, srv, "run", "/a", "--", "sh", "-c", `cat; echo; env | grep ^DOCENT_`)
	cmd.Env = append(cmd.Env, "DOCENT_TOKEN=forged")
	cmd.Stdin = strings.NewReader("from outside")
	s := result(t, cmd)
	if s.code != 0 || !strings.HasPrefix(s.out, "from outside\n") || strings.Contains(s.out, "forged") {
		t.Fatalf("%+v", s)
	}
	for _, want := range []string{"DOCENT_PATH=/a\n", "DOCENT_NODE=_c_", "DOCENT_TOKEN=", "DOCENT_SESSION=0x", "DOCENT_DEADLINE_UNIX="} {
		if !strings.Contains(s.out, want) {
			t.Errorf("no %s in %s", want, s.out)
		}
	}
	if got := srv.Children("/a"); len(got) != 0 {
		t.Errorf("left %v", got)
	}
}

// One at a time, whatever the order.
func TestRunExcludes(t *testing.T) {
	t.Parallel()
	srv := server(t)
	count := filepath.Join(t.TempDir(), "count")
	const runs = 6
	done := make(chan said, runs)
	for range runs {
		cmd := docent(t, srv, "run", "/a", "--", "sh", "-c", `n=$(cat "$0" 2>/dev/null || echo 0); echo $((n+1)) > "$0"`, count)
		go func() { done <- result(t, cmd) }()
	}
	for range runs {
		if s := <-done; s.code != 0 {
			t.Errorf("%+v", s)
		}
	}
	if got, err := os.ReadFile(count); err != nil || strings.TrimSpace(string(got)) != strconv.Itoa(runs) {
		t.Errorf("%s, %v", got, err)
	}
}

// A signal while docent waits: no node stays, and the command has not run.
func TestRunSignalWhileWaiting(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		srv := server(t)
		hold := acquired(t, connect(t, srv), "/a")
		mark := filepath.Join(t.TempDir(), "ran")
		cmd := docent(t, srv, "run", "/a", "--", "touch", mark)
		errs := new(text)
		cmd.Stderr = errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return len(srv.Children("/a")) == 2 })
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitSignalled+int(sig) || !strings.Contains(errs.String(), "queue was left") {
			t.Errorf("%v: exit code %d: %s", sig, cmd.ProcessState.ExitCode(), errs)
		}
		if got := srv.Children("/a"); len(got) != 1 {
			t.Errorf("%v: left %v", sig, got)
		}
		if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v: the command ran", sig)
		}
		if err := hold.Close(); err != nil {
			t.Error(err)
		}
	}
}

// running starts a docent whose command writes a line when it has begun.
func running(t *testing.T, cmd *exec.Cmd) *text {
	t.Helper()
	errs := new(text)
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "begun\n" {
		t.Fatalf("said %q, %v", line, err)
	}
	return errs
}

func TestRunPassesSignals(t *testing.T) {
	t.Parallel()
	srv := server(t)
	cmd := docent(t, srv, "run", "/a", "--", "sh", "-c", `trap 'exit 33' USR1; echo begun; while :; do sleep 0.01; done`)
	running(t, cmd)
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 33 {
		t.Errorf("exit code %d", cmd.ProcessState.ExitCode())
	}
}

// The command ends, and has left a process that ignores SIGTERM: the lock is released
// when that has gone.
func TestRunEndsWhatTheCommandLeaves(t *testing.T) {
	t.Parallel()
	srv := server(t)
	pid := filepath.Join(t.TempDir(), "pid")
	s := result(t, docent(t, srv, "run", "--grace", "100ms", "/a", "--", "sh", "-c",
		`sh -c 'trap "" TERM; echo $$ > "$0.new"; mv "$0.new" "$0"; while :; do sleep 0.01; done' "$0" >/dev/null 2>&1 & until [ -e "$0" ]; do sleep 0.01; done`, pid))
	if s.code != 0 {
		t.Errorf("%+v", s)
	}
	dead(t, pid)
}

// dead checks that the process whose id is in file has ended.
func dead(t *testing.T, file string) {
	t.Helper()
	if !gonePID(t, file) {
		t.Errorf("the process of %s has not ended", file)
	}
}

// gonePID reports whether there is no process with the id in file. A dead process that was not reaped
// counts as one.
func gonePID(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return errors.Is(syscall.Kill(id, 0), syscall.ESRCH)
}

// A loss that docent learns of after the fact: the whole pipeline is killed.
func TestRunLosesItsSession(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*zktest.Server, string){
		"session killed": func(srv *zktest.Server, _ string) { srv.ExpireSession(srv.Sessions()[0].ID) },
		"evicted":        func(srv *zktest.Server, node string) { _ = srv.Delete(node) },
	} {
		srv := server(t)
		pid := filepath.Join(t.TempDir(), "pid")
		cmd := docent(t, srv, "run", "/a", "--", "sh", "-c",
			`sh -c 'trap "" TERM; echo $$ > "$0"; echo begun; while :; do sleep 0.01; done' "$0" | cat`, pid)
		errs := running(t, cmd)
		lose(srv, "/a/"+srv.Children("/a")[0])
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitLost || !strings.Contains(errs.String(), "the lock was lost") {
			t.Errorf("%s: exit code %d: %s", name, cmd.ProcessState.ExitCode(), errs)
		}
		dead(t, pid)
	}
}

// The servers do not answer: SIGTERM first, and SIGKILL before another client can hold.
func TestRunLosesItsServers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args  []string
		child string
		code  int
		says  string
	}{
		{nil, `trap 'exit 5' TERM; echo begun; while :; do sleep 0.01; done`, exitLost, "SIGTERM"},
		{nil, `trap 'exit 0' TERM; echo begun; while :; do sleep 0.01; done`, exitLost, "SIGTERM"},
		{nil, `trap '' TERM; echo begun; while :; do sleep 0.01; done`, exitLost, "the command goes on; SIGKILL"},
		{[]string{"--on-loss", "kill"}, `trap 'exit 5' TERM; echo begun; while :; do sleep 0.01; done`, exitLost, "SIGKILL"},
	} {
		srv := server(t)
		args := append(append([]string{"run", "--session-timeout", "4s", "--grace", "300ms", "--margin", "300ms"}, tt.args...), "/a", "--", "sh", "-c", tt.child)
		cmd := docent(t, srv, args...)
		errs := running(t, cmd)
		next := connect(t, srv, client.WithSessionTimeout(4*time.Second))
		// The next holder is on another connection, which stays.
		first := srv.Sessions()[0].ID
		srv.Ignore(zktest.Match{Session: first, Times: zktest.Always})
		granted := make(chan time.Time, 1)
		m := mutex(t, next, "/a")
		go func() {
			if h, err := m.Acquire(t.Context()); err == nil {
				granted <- time.Now()
				_ = h.Close()
			}
		}()
		_ = cmd.Wait()
		ended := time.Now()
		if cmd.ProcessState.ExitCode() != tt.code || !strings.Contains(errs.String(), tt.says) {
			t.Errorf("%v %s: exit code %d: %s", tt.args, tt.child, cmd.ProcessState.ExitCode(), errs)
		}
		select {
		case at := <-granted:
			if at.Before(ended) {
				t.Errorf("%v: the next holder began %v before the command had ended", tt.args, ended.Sub(at))
			}
		case <-time.After(20 * time.Second):
			t.Error("the next client does not get the lock")
		}
	}
}

func TestRunWarnsAndGoesOn(t *testing.T) {
	t.Parallel()
	srv := server(t)
	stop := filepath.Join(t.TempDir(), "stop")
	cmd := docent(t, srv, "run", "--on-loss", "warn", "/a", "--", "sh", "-c", `echo begun; until [ -e "$0" ]; do sleep 0.01; done`, stop)
	errs := running(t, cmd)
	_ = srv.Delete("/a/" + srv.Children("/a")[0])
	next := acquired(t, connect(t, srv), "/a") // while the command goes on
	eventually(t, func() bool { return strings.Contains(errs.String(), "goes on without the lock") })
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitLost {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), errs)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// Two docents, each in the command of another one, wait for the locks of these.
func TestDeadlocksOfNestedRuns(t *testing.T) {
	t.Parallel()
	srv := server(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	nested := func(outer, inner string) *exec.Cmd {
		cmd := docent(t, srv, "run", "--settle", "0", outer, "--", self, "--servers", srv.Addr(), "run", inner, "--", "true")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	stand := func(a, b int) {
		t.Helper()
		eventually(t, func() bool { return len(srv.Children("/a")) == a && len(srv.Children("/b")) == b })
	}
	c := connect(t, srv)
	first := acquired(t, c, "/b")
	ba := nested("/b", "/a")
	stand(0, 2)
	ab := nested("/a", "/b")
	stand(1, 3)
	if s := do(t, srv, "deadlocks"); s.code != 0 || !strings.Contains(s.err, "--dot has 4 waits") {
		t.Errorf("all wait for the first holder: %+v", s)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	stand(2, 2)
	s := do(t, srv, "deadlocks", "-o", "json")
	var circle []wait
	if err := json.Unmarshal([]byte(s.out), &circle); err != nil || s.code != exitFailure || len(circle) != 4 {
		t.Fatalf("%v, %+v", err, s)
	}
	kinds := map[string]int{}
	for _, w := range circle {
		kinds[w.Kind+" "+w.Lock]++
		if strings.Contains(w.Waiter+w.Holder, "within") || !slices.ContainsFunc(circle, func(next wait) bool { return next.Waiter == w.Holder }) {
			t.Errorf("%+v is not a part of the circle", w)
		}
	}
	if kinds["mutex /a"] != 1 || kinds["mutex /b"] != 1 || kinds["command "] != 2 {
		t.Errorf("%+v", circle)
	}
	if s := do(t, srv, "deadlocks", "--dot"); strings.Count(s.out, `[label="command"]`) != 2 {
		t.Errorf("%+v", s)
	}
	var in []row
	if s := do(t, srv, "queue", "/a", "-o", "json"); json.Unmarshal([]byte(s.out), &in) != nil || len(in) != 2 ||
		in[0].Within != "" || in[1].Within == "" || in[1].Client != "docent" {
		t.Errorf("%+v", s)
	}
	for _, cmd := range []*exec.Cmd{ab, ba} {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitSignalled+int(syscall.SIGTERM) {
			t.Errorf("exit code %d", cmd.ProcessState.ExitCode())
		}
	}
}

// A docent that waits for the lock under which it runs waits for ever.
func TestDeadlocksOfOneLock(t *testing.T) {
	t.Parallel()
	srv := server(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := docent(t, srv, "run", "/a", "--", "sh", "-c", `exec "$0" --servers "$1" run /a -- true`, self, srv.Addr())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(srv.Children("/a")) == 2 })
	if s := do(t, srv, "deadlocks"); s.code != exitFailure || !strings.Contains(s.err, "2 waits are part of a circle") {
		t.Errorf("%+v", s)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// A docent that campaigns in the command of another one does nothing else, so the other one
// waits for the lead.
func TestDeadlocksOfNestedElections(t *testing.T) {
	t.Parallel()
	srv := server(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := docent(t, srv, "elect", "/leader", "--", "sh", "-c", `exec "$0" --servers "$1" elect /leader -- true`, self, srv.Addr())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(srv.Children("/leader")) == 2 })
	if s := do(t, srv, "deadlocks"); s.code != exitFailure || !strings.Contains(s.err, "2 waits are part of a circle") {
		t.Errorf("%+v", s)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}
