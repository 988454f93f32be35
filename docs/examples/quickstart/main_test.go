package main

import (
	"os"
	"strings"
	"testing"
)

// The program says what docs/quickstart.md says that it does, and the page shows it.
func TestPage(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```\n"+out.String()+"```\n") {
		t.Errorf("docs/quickstart.md shows other output than\n%s", out.String())
	}
	code, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, block := range strings.Split(string(page), "```go\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		blocks = append(blocks, block)
	}
	_, program, _ := strings.Cut(string(code), "\npackage main")
	if pasted := strings.Join(blocks, "\n"); pasted != "package main"+program {
		t.Errorf("the blocks of docs/quickstart.md, one after the other, are not main.go:\n%s", pasted)
	}
}
