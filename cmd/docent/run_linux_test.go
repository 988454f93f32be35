package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Docent itself is killed: so is the command, before the session is over.
func TestRunIsKilled(t *testing.T) {
	t.Parallel()
	srv := server(t)
	pid := filepath.Join(t.TempDir(), "pid")
	cmd := docent(t, srv, "run", "/a", "--", "sh", "-c", `echo $$ > "$0"; echo begun; while :; do sleep 0.01; done`, pid)
	running(t, cmd)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, func() bool {
		text, err := os.ReadFile(pid)
		if err != nil {
			return false
		}
		id, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return false
		}
		state, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat")
		return err != nil || strings.Contains(string(state), ") Z ")
	})
}
