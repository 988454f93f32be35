//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/docent-go/docent/recipes"
)

// Each layout excludes the recipe that it is compatible with, and its node has the id.
func TestElectLayouts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags []string
		tag   string
	}{
		"latch":    {nil, "-latch-"},
		"selector": {[]string{"--selector"}, "-lock-"},
	} {
		srv := server(t)
		stop := filepath.Join(t.TempDir(), "stop")
		args := append(append([]string{"elect", "--id", "worker-7"}, tt.flags...), "/e", "--", "sh", "-c", `echo begun; until [ -e "$0" ]; do sleep 0.01; done; exit 9`, stop)
		cmd := docent(t, srv, args...)
		running(t, cmd)
		nodes := srv.Children("/e")
		if len(nodes) != 1 || !strings.Contains(nodes[0], tt.tag) {
			t.Fatalf("%s: %v", name, nodes)
		}
		if node, _ := srv.Node("/e/" + nodes[0]); string(node.Data) != "worker-7" {
			t.Errorf("%s: the data is %q", name, node.Data)
		}
		other := append(append([]string{"elect", "--try"}, tt.flags...), "/e", "--", "true")
		if s := result(t, docent(t, srv, other...)); s.code != exitConflict {
			t.Errorf("%s: a second leader: %+v", name, s)
		}
		if err := os.WriteFile(stop, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 9 {
			t.Errorf("%s: exit code %d", name, cmd.ProcessState.ExitCode())
		}
		if got := srv.Children("/e"); len(got) != 0 {
			t.Errorf("%s: left %v", name, got)
		}
	}
}

// The latch of this library and the command stand in one line.
func TestElectWaitsForTheLeader(t *testing.T) {
	t.Parallel()
	srv := server(t)
	latch, err := recipes.NewLeaderLatch(connect(t, srv), "/e")
	if err != nil {
		t.Fatal(err)
	}
	term, err := latch.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s := result(t, docent(t, srv, "elect", "--timeout", "50ms", "/e", "--", "true")); s.code != exitConflict || s.out != "" {
		t.Errorf("%+v", s)
	}
	done := make(chan said, 1)
	go func() { done <- result(t, docent(t, srv, "elect", "/e", "--", "sh", "-c", "echo $DOCENT_TOKEN")) }()
	eventually(t, func() bool { return len(srv.Children("/e")) == 2 })
	if err := term.Close(); err != nil {
		t.Fatal(err)
	}
	s := <-done
	if token, err := strconv.ParseInt(strings.TrimSpace(s.out), 10, 64); s.code != 0 || err != nil || token <= term.FencingToken() {
		t.Errorf("%+v after token %d", s, term.FencingToken())
	}
}

// turns reads what a command has written, a line each turn.
func turns(file string) []string {
	text, _ := os.ReadFile(file)
	return strings.Fields(string(text))
}

// A lead that was lost, and a command that has ended with 0, are followed by another turn.
func TestElectAgain(t *testing.T) {
	t.Parallel()
	srv := server(t)
	file := filepath.Join(t.TempDir(), "turns")
	cmd := docent(t, srv, "elect", "--again", "/e", "--", "sh", "-c",
		`echo $DOCENT_TOKEN >> "$0"; case $(wc -l < "$0") in 1) exit 0;; *) while :; do sleep 0.01; done;; esac`, file)
	errs := new(text)
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(turns(file)) == 2 })
	_ = srv.Delete("/e/" + srv.Children("/e")[0])
	eventually(t, func() bool { return len(turns(file)) == 3 })
	srv.ExpireSession(srv.Sessions()[0].ID)
	eventually(t, func() bool { return len(turns(file)) == 4 })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != exitSignalled+int(syscall.SIGTERM) {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), errs)
	}
	if n := strings.Count(errs.String(), "waiting for the next turn"); n != 2 {
		t.Errorf("two losses: %s", errs)
	}
	last := int64(0)
	for _, token := range turns(file) {
		now, err := strconv.ParseInt(token, 10, 64)
		if err != nil || now <= last {
			t.Errorf("tokens %v", turns(file))
		}
		last = now
	}
	if got := srv.Children("/e"); len(got) != 0 {
		t.Errorf("left %v", got)
	}
}

// A command that fails ends docent, and so does a signal between two turns.
func TestElectAgainEnds(t *testing.T) {
	t.Parallel()
	srv := server(t)
	if s := result(t, docent(t, srv, "elect", "--again", "/e", "--", "sh", "-c", "exit 3")); s.code != 3 {
		t.Errorf("%+v", s)
	}
	if s := result(t, docent(t, srv, "elect", "--again", "--selector", "/e/../e", "--", "true")); s.code != exitUsage {
		t.Errorf("%+v", s)
	}
	acquired(t, connect(t, srv), "/locks/a")
	if s := result(t, docent(t, srv, "elect", "--again", "/locks/a", "--", "true")); s.code != exitOwn || !strings.Contains(s.err, "mutex") {
		t.Errorf("a lock's path: %+v", s)
	}
	file := filepath.Join(t.TempDir(), "turns")
	cmd := docent(t, srv, "elect", "--again", "/e", "--", "sh", "-c", `echo turn >> "$0"`, file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(turns(file)) == 1 && len(srv.Children("/e")) == 0 })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitSignalled+int(syscall.SIGTERM) {
		t.Errorf("between two turns: %v", err)
	}
}
