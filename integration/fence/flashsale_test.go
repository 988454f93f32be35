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
// that is stopped while it holds the lock writes late. Only a token that was
// raised before the next holder read keeps the books right in every schedule.
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
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			said, err := exec.CommandContext(ctx, program, "-pause-holder", "-db", c.dsn(t), "-timeout", "200s").CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			trials := strings.Split(string(said), "\n\n")[1:] // after the heading
			if len(trials) != 4 {
				t.Fatalf("%d trials, want 4:\n%s", len(trials), said)
			}
			for _, want := range []struct{ in, text string }{
				{trials[0], "the lock alone"},
				{trials[0], "its write was accepted"},
				{trials[0], "BOOKS ARE WRONG"},
				{trials[1], "the token raised first"},
				{trials[1], "its write was refused: fence: stale fencing token"},
				{trials[1], "books are right; updates lost: 0"},
				{trials[2], "the token only checked by each write"},
				{trials[2], "0 items were sold until"},
				{trials[2], "its write was accepted"},
				{trials[2], "61 items sold, 60 were for sale"},
				{trials[2], "updates lost: 1"},
				{trials[3], "the token raised first"},
				{trials[3], "0 items were sold until"},
				{trials[3], "its write was refused: fence: stale fencing token"},
				{trials[3], "books are right; updates lost: 0"},
			} {
				if !strings.Contains(want.in, want.text) {
					t.Errorf("it did not say %q:\n%s", want.text, said)
				}
			}
		})
	}
}
