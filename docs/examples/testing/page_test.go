package orders_test

import (
	"os"
	"strings"
	"testing"
)

// TestPage finds every function of docs/testing.md in this package, so that the page
// shows code that runs.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../testing.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("lock_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range strings.Split(string(page), "```go\n")[1:] {
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
		t.Errorf("%d functions on the page", found)
	}
}
