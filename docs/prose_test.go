package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxWords is a bound and not a goal: a sentence of more than 25 words is to be
// split where it can be.
const (
	maxWords  = 40
	goalWords = 25
)

// pages are the texts that the rules are for: those of this directory and below, those of bench/results, and two above.
func pages(t *testing.T) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".md" {
			paths = append(paths, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	results, err := filepath.Glob("../bench/results/*.md")
	if err != nil {
		t.Fatal(err)
	}
	paths = append(append(paths, results...), "../README.md", "../CONTRIBUTING.md")
	for _, path := range []string{"README.md", "internals/goroutines.md", "decisions/README.md", "../bench/results/method.md"} {
		if !slices.Contains(paths, path) {
			t.Fatalf("%s is not among the pages %v", path, paths)
		}
	}
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// banned are turns of phrase that cost a reader a second look, with what to
// write in their place.
var banned = []struct{ phrase, write string }{
	{`the own`, `name the owner: "its own node"`},
	{`go(es)? with the (session|release)`, `"is deleted with the session"`},
	{`anew`, `"again", or "a new ..."`},
	{`in vain`, `say what fails`},
	{`(is|are) to be had`, `"can be had", or say who gives it`},
	{`nor (do|does|did|is|are|was|were|has|have|can|may)`, `a sentence of its own, with "not"`},
	{`who(m|so)?ever`, `name the actor: "the caller", "the holder"`},
	{`somebody`, `name the actor: "another client", "an operator"`},
	{`those who(m)?`, `name the actors: "the waiters", "callers that"`},
	{`neither (prolong|shorten)`, `say each half with its verb`},
}

func TestPlainWords(t *testing.T) {
	t.Parallel()
	blocks := map[string]string{} // of each page, a line each
	for _, path := range pages(t) {
		blocks[path] = strings.ToLower(strings.Join(prose(read(t, path), true), "\n"))
	}
	for _, b := range banned {
		phrase := regexp.MustCompile(`\b(` + b.phrase + `)\b`)
		anywhere := regexp.MustCompile(b.phrase) // without \b much faster: most phrases begin with a literal
		for path, text := range blocks {
			if !anywhere.MatchString(text) {
				continue
			}
			if found := phrase.FindStringIndex(text); found != nil {
				around := text[max(0, found[0]-40):min(len(text), found[1]+20)]
				t.Errorf("%s: %q; write %s", path, around, b.write)
			}
		}
	}
}

func TestShortSentences(t *testing.T) {
	t.Parallel()
	total, long := 0, 0
	for _, path := range pages(t) {
		here := 0
		for _, block := range prose(read(t, path), false) {
			for _, s := range sentences(block) {
				total++
				n := len(strings.Fields(s))
				if n > goalWords {
					here++
				}
				if n > maxWords {
					t.Errorf("%s: %d words, more than %d: %q", path, n, maxWords, s)
				}
			}
		}
		long += here
		t.Logf("%s: %d sentences of more than %d words", path, here, goalWords)
	}
	t.Logf("%d of %d sentences have more than %d words", long, total, goalWords)
}

func TestSentences(t *testing.T) {
	t.Parallel()
	page := "# A heading\n\nOne, e.g. `a.b c`. Two\ngoes on: see [x y](z.md).\n\n    $ shown\n\n- Three.\n  More\n- Four\n\n```go\ncode here\n```\n\n| a | b |\n|---|---|\n| Not. | This. |\n"
	var got []string
	for _, block := range prose(page, false) {
		got = append(got, sentences(block)...)
	}
	want := []string{"One, e.g.", "CODE.", "Two goes on: see x y.", "Three.", "More", "Four"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("sentences are %q, want %q", got, want)
	}
	if got := prose(page, true); len(got) == 0 || !strings.Contains(strings.Join(got, "\n"), "Not.") {
		t.Errorf("with tables the prose is %q, without the table", got)
	}
}
