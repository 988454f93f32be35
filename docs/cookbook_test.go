package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// The code of these pages, from a heading on, is taken from the programs in docs/examples,
// which tests run.
func TestCodeIsTaken(t *testing.T) {
	t.Parallel()
	indent := regexp.MustCompile(`(?m)^\t+`)
	programs := indent.ReplaceAllString(sourceOf(t, "examples"), "")
	for page, heading := range map[string]string{"cookbook.md": "# ", "curator-migration.md": "## A whole service"} {
		blocks := 0
		before, part, found := strings.Cut(read(t, page), heading)
		if !found {
			t.Errorf("%s has no part %q", page, heading)
		}
		if strings.HasPrefix(heading, "## ") {
			part, _, _ = strings.Cut(part, "\n## ")
		}
		for _, b := range codeBlocks(part) {
			if b.language != "go" {
				continue
			}
			blocks++
			if !strings.Contains(programs, indent.ReplaceAllString(b.text, "")) {
				t.Errorf("%s:%d: no program in docs/examples has this code", page, strings.Count(before, "\n")+b.line)
			}
		}
		if blocks == 0 {
			t.Errorf("%s shows no code", page)
		}
	}
}
