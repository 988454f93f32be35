package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxWords is a bound and not a goal: a sentence of more than 25 words is to be
// split where it can be.
const (
	maxWords  = 40
	goalWords = 25
)

// pages are the texts that the rules are for.
func pages(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatal("there is no page in this directory")
	}
	return append(paths, "../README.md", "../CONTRIBUTING.md")
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
	for _, path := range pages(t) {
		text := strings.Join(prose(read(t, path), true), "\n")
		for _, b := range banned {
			for _, found := range regexp.MustCompile(`(?i)[^\n]{0,40}\b`+b.phrase+`\b[^\n]{0,20}`).FindAllString(text, -1) {
				t.Errorf("%s: %q; write %s", path, found, b.write)
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

// headings are the anchors that GitHub makes.
func headings(page string) map[string]bool {
	anchors := map[string]bool{}
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if !fenced && strings.HasPrefix(line, "#") {
			title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
			title = regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(title, "")
			anchors[strings.ReplaceAll(title, " ", "-")] = true
		}
	}
	return anchors
}

func TestLinks(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, path := range append(pages(t), "../CHANGELOG.md") {
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
