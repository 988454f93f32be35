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
	quoted := 0
	for _, block := range strings.Split(string(page), "```go\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		indented := "\t" + strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", "\n\t")
		if quoted++; !strings.Contains(string(code), strings.ReplaceAll(indented, "\t\n", "\n")) {
			t.Errorf("not in main.go:\n%s", block)
		}
	}
	if quoted != 4 {
		t.Errorf("docs/quickstart.md quotes the program in %d blocks, want 4", quoted)
	}
}
