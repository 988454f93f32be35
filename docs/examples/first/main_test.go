package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/zktest"
)

// The program takes the lock, and leaves nothing of its own behind.
func TestRun(t *testing.T) {
	t.Parallel()
	srv := zktest.NewServer(t)
	var made, deleted []string
	srv.OnCommit(func(c zktest.Commit) {
		made, deleted = append(made, c.Created...), append(deleted, c.Deleted...)
	})
	if err := run(t.Context(), srv.Addr()); err != nil {
		t.Fatal(err)
	}
	_ = srv.Close() // no commit comes after that
	if len(made) == 0 || len(deleted) != 1 || !slices.Contains(made, deleted[0]) || !strings.HasPrefix(deleted[0], "/locks/orders/") {
		t.Errorf("the program made %v and deleted %v, want the node of the lock in both", made, deleted)
	}
}

// README.md shows this program, to the letter.
func TestReadme(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(code), "\n") // without the comment of the package
	if !strings.Contains(string(page), "```go\n"+program+"```\n") {
		t.Error("README.md shows another program than docs/examples/first/main.go")
	}
}
