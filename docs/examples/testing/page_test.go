package orders_test

import (
	"os"
	"strings"
	"testing"
)

// TestPage finds every function of docs/testing.md and docs/testing-faults.md in this package,
// so that the pages show code that runs.
func TestPage(t *testing.T) {
	t.Parallel()
	var pages string
	for _, path := range []string{"../../testing.md", "../../testing-faults.md"} {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pages += string(page)
	}
	code, err := os.ReadFile("lock_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range strings.Split(pages, "```go\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(block, "func ") {
			continue
		}
		found++
		if !strings.Contains(string(code), block) {
			t.Errorf("not in lock_test.go:\n%s", block)
		}
	}
	if found < 4 {
		t.Errorf("%d functions on the pages", found)
	}
}
