package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// How many words all pages below docs may have together, and the page of performance alone.
// A fact that is new takes the place of words that nobody needs.
const (
	mostWords            = 60000
	mostPerformanceWords = 2500
)

// wordsOf counts the words of a page: what stands between spaces and holds a letter or a
// digit. Code counts as prose does.
func wordsOf(page string) int {
	words := 0
	for field := range strings.FieldsSeq(page) {
		if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			words++
		}
	}
	return words
}

// A person can read all pages.
func TestWords(t *testing.T) {
	t.Parallel()
	total, byDirectory := 0, map[string]int{}
	err := filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".md" {
			words := wordsOf(read(t, path))
			total += words
			byDirectory[filepath.ToSlash(filepath.Dir(path))] += words
		}
		return err
	})
	if err != nil || total == 0 {
		t.Fatalf("%d words, error %v", total, err)
	}
	t.Logf("%d words, by directory %v", total, byDirectory)
	if total > mostWords {
		t.Errorf("the pages of docs have %d words, more than %d: %v", total, mostWords, byDirectory)
	}
	if words := wordsOf(read(t, "performance.md")); words > mostPerformanceWords {
		t.Errorf("performance.md has %d words, more than %d", words, mostPerformanceWords)
	}
}

// Words of prose, tables and code count, marks alone do not.
func TestWordsOf(t *testing.T) {
	t.Parallel()
	page := "# Two words\n\n- one, `a.b c` — |\n\n| 12 | |\n|---|---|\n\n```go\nx := f(y)\n```\n"
	if words := wordsOf(page); words != 9 {
		t.Errorf("%d words, want 9", words)
	}
}
