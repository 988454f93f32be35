package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// The code of these pages is taken from the programs in docs/examples, which tests run.
func TestCodeIsTaken(t *testing.T) {
	t.Parallel()
	indent := regexp.MustCompile(`(?m)^\t+`)
	programs := indent.ReplaceAllString(sourceOf(t, "examples"), "")
	for _, page := range []string{"cookbook.md", "curator-migration.md"} {
		blocks := 0
		for _, b := range codeBlocks(read(t, page)) {
			if b.language != "go" {
				continue
			}
			blocks++
			if !strings.Contains(programs, indent.ReplaceAllString(b.text, "")) {
				t.Errorf("%s:%d: no program in docs/examples has this code", page, b.line)
			}
		}
		if blocks == 0 {
			t.Errorf("%s shows no code", page)
		}
	}
}
