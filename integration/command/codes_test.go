package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Every exit code that docs/command.md names, each provoked.
func exitCodes(w *world) {
	servers := w.e.ConnectString()
	plain := filepath.Join(w.TempDir(), "plain")
	w.check(os.WriteFile(plain, nil, 0o600))
	held, lockFile := w.directory(), filepath.Join(w.TempDir(), "lock")
	holder := w.start(w.e.Node(1), held, lockFile, nothing, "run")
	holder.at("begun", holder.begun)
	free := w.directory()
	for _, tt := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"the command's", []string{"run", free, "--", "sh", "-c", "exit 7"}, 7, ""},
		{"the command succeeds", []string{"elect", free + "/e", "--", "true"}, 0, ""},
		{"the command is killed", []string{"run", free, "--", "sh", "-c", "kill -9 $$"}, 128 + 9, ""},
		{"held, with --try", []string{"run", "--try", held, "--", "true"}, 124, "not free"},
		{"held, until the time is over", []string{"run", "--timeout", "1s", held, "--", "true"}, 124, "waiting behind"},
		{"held, with a code of its own", []string{"run", "--try", "-E", "75", held, "--", "true"}, 75, "not free"},
		{"another recipe is there", []string{"elect", held, "--", "true"}, 125, "mutex"},
		{"no server", []string{"run", "--servers", "127.0.0.1:1", "--connect-timeout", "200ms", free, "--", "true"}, 125, "refused"},
		{"not executable", []string{"run", free, "--", plain}, 126, "permission denied"},
		{"not there", []string{"run", free, "--", "no-such-command"}, 127, "no-such-command"},
		{"a mistake", []string{"run", "--grace", "-1s", free, "--", "true"}, 2, "--help"},
		{"a relative path", []string{"check", "locks"}, 2, `starts with "/"`},
		{"not there to look at", []string{"who", free + "/none"}, 1, "does not exist"},
	} {
		out, said, code := w.result(w.command(servers, tt.args...))
		if code != tt.code || !strings.Contains(said, tt.says) || tt.says == "" && said != "" || out != "" {
			w.Errorf("%s: exit code %d, want %d: %s%s", tt.name, code, tt.code, out, said)
		}
	}
	if _, said, code := w.result(w.command(servers, "evict", "--yes", held, *holder.node.Load())); code != 0 {
		w.Errorf("evict: exit code %d: %s", code, said)
	}
	if code := holder.code(); code != exitLost {
		w.Errorf("the lock was lost: exit code %d: %s", code, holder.said)
	}
	w.queue(free, 1) // the election's directory
}

// SIGTERM comes before the lock is acquired, in every moment of a run. docent ends with
// its code, and the command has not run. No node is left, ghosts of lost answers
// included.
func signalBeforeTheLock(w *world) {
	dir := w.directory()
	holder := w.start(w.e.Node(1), dir, filepath.Join(w.TempDir(), "lock"), nothing, "run")
	holder.at("begun", holder.begun)
	mark := filepath.Join(w.TempDir(), "ran")
	for n := range 16 {
		cmd := w.command(w.e.ConnectString(), "run", dir, "--", "touch", mark)
		said := new(text)
		cmd.Stderr = said
		w.check(cmd.Start())
		if n == 0 {
			w.queue(dir, 2)
		} else {
			<-time.After(time.Duration(n) * 4 * time.Millisecond) // into the connecting, the create, the list
		}
		w.check(cmd.Process.Signal(syscall.SIGTERM))
		_ = cmd.Wait()
		// Before Go's runtime has begun the signal ends the process by itself.
		status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		byItself := n > 0 && status.Signaled() && status.Signal() == syscall.SIGTERM
		if code := status.ExitStatus(); code != 128+int(syscall.SIGTERM) && !byItself {
			w.Errorf("run %d: exit code %d: %s", n, code, said)
		}
		w.queueWithin(atOnce, dir, 1)
	}
	if _, err := os.Stat(mark); err == nil {
		w.Error("a command ran")
	}
	holder.stop()
	w.queue(dir, 0)
}

// A signal ends the whole pipeline, of which a part ignores it, and the lock is free after
// that.
func pipelineEnds(w *world) {
	dir, lockFile := w.directory(), filepath.Join(w.TempDir(), "lock")
	for range 4 {
		d := w.start(w.e.Node(1), dir, lockFile, ignores, "run", "--try", "--grace", "300ms")
		d.at("begun", d.begun)
		if !d.alone.Load() {
			w.Error("the lock was acquired while a process of the last pipeline ran")
		}
		d.stop()
		d.at("ended", d.ended)
		w.queue(dir, 0)
	}
}
