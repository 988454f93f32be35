package fence_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The experiment of docs/examples/flashsale/db, on each database: a process
// that is stopped while it holds the lock writes late, and only fencing keeps
// the books right.
func TestFlashsalePauseHolder(t *testing.T) {
	program := filepath.Join(t.TempDir(), "flashsale")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = "../../docs/examples/flashsale/db"
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, said)
	}
	for _, c := range []struct {
		name string
		dsn  func(*testing.T) string
	}{
		{"PostgreSQL", startPostgreSQL},
		{"MariaDB", startMariaDB},
		{"SQLite", func(t *testing.T) string { t.Helper(); return "file:" + filepath.Join(t.TempDir(), "shop") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they wait for sessions to end most of the time
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			said, err := exec.CommandContext(ctx, program, "-pause-holder", "-db", c.dsn(t), "-timeout", "100s").CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			without, with, _ := strings.Cut(string(said), "fenced: true")
			for _, want := range []struct{ in, text string }{
				{without, "its write was accepted"},
				{without, "BOOKS ARE WRONG"},
				{with, "its write was refused: fence: stale fencing token"},
				{with, "books are right"},
			} {
				if !strings.Contains(want.in, want.text) {
					t.Errorf("it did not say %q:\n%s", want.text, said)
				}
			}
		})
	}
}
