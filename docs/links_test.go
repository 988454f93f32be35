package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unanchored is what GitHub leaves out of an anchor.
var unanchored = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// anchorOf is what GitHub makes of a heading.
func anchorOf(heading string) string {
	title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(heading, "#")))
	return strings.ReplaceAll(unanchored.ReplaceAllString(title, ""), " ", "-")
}

// headings are the anchors of a page.
func headings(page string) map[string]bool {
	anchors := map[string]bool{}
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if !fenced && strings.HasPrefix(line, "#") {
			anchors[anchorOf(line)] = true
		}
	}
	return anchors
}

// allPages are those of every module.
func allPages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ".md") {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("pages %v, error %v", all, err)
	}
	return all
}

func TestLinks(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, path := range allPages(t) {
		page := read(t, path)
		for _, found := range link.FindAllStringSubmatch(page, -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := path
			if target != "" {
				file = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the link %s leads nowhere: %v", path, found[1], err)
				continue
			}
			if anchor != "" && !headings(read(t, file))[anchor] {
				t.Errorf("%s: %s has no heading %q", path, file, anchor)
			}
		}
	}
}
