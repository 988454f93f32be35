package docs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recipeSections are the headings of a recipe's page, behind the paragraph that says what
// the recipe is.
var recipeSections = []string{"When to use it", "Code", "What is true after failure", "On the wire", "Options"}

// mostRecipeWords bounds a recipe's page, without its code: it is read in two minutes.
const mostRecipeWords = 500

// recipePages are the pages that docs/README.md lists as recipes.
func recipePages(t *testing.T) []string {
	t.Helper()
	_, part, found := strings.Cut(read(t, "README.md"), "\n## Recipes\n")
	if !found {
		t.Fatal("docs/README.md has no part Recipes")
	}
	part, _, _ = strings.Cut(part, "\n## ")
	var paths []string
	for _, link := range regexp.MustCompile(`\]\(([a-z-]+\.md)\)`).FindAllStringSubmatch(part, -1) {
		paths = append(paths, link[1])
	}
	return paths
}

// words are those of a text that have a letter or a digit.
func words(text string) int {
	return len(regexp.MustCompile(`\S*[\p{L}\p{N}]\S*`).FindAllString(text, -1))
}

// wrongRecipe returns what is wrong with the shape of a recipe's page.
func wrongRecipe(page string) []string {
	var wrong []string
	outside := proseLines(page)
	var sections []string
	filled := map[string]bool{}
	section := ""
	for _, line := range outside {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "## "):
			section = strings.TrimPrefix(text, "## ")
			sections = append(sections, section)
		case strings.HasPrefix(text, "#"):
			if section != "" {
				wrong = append(wrong, "a heading within "+section)
			}
		case text != "":
			filled[section] = true
		}
	}
	if !slices.Equal(sections, recipeSections) {
		wrong = append(wrong, fmt.Sprintf("sections %q, want %q", sections, recipeSections))
	}
	if !filled[""] {
		wrong = append(wrong, "no paragraph says what it is")
	}
	for _, section := range sections {
		if !filled[section] && section != "Code" {
			wrong = append(wrong, "nothing in "+section)
		}
	}
	_, code, _ := strings.Cut(page, "\n## Code\n")
	code, _, _ = strings.Cut(code, "\n## ")
	if !strings.Contains(code, "```go\n") {
		wrong = append(wrong, "no code in Code")
	}
	_, wire, _ := strings.Cut(page, "\n## On the wire\n")
	wire, _, _ = strings.Cut(wire, "\n## ")
	if !strings.Contains(wire, "](internals/") {
		wrong = append(wrong, "On the wire does not lead to the internals")
	}
	if n := words(strings.Join(outside, "")); n > mostRecipeWords {
		wrong = append(wrong, fmt.Sprintf("%d words beside its code, more than %d", n, mostRecipeWords))
	}
	return wrong
}

// Every page of a recipe has the same sections in the same order.
func TestRecipePages(t *testing.T) {
	t.Parallel()
	paths := recipePages(t)
	if len(paths) < 10 {
		t.Fatalf("docs/README.md lists the recipes %v", paths)
	}
	for _, path := range paths {
		for _, what := range wrongRecipe(read(t, path)) {
			t.Errorf("docs/%s: %s", path, what)
		}
	}
}

// A page of another shape is noticed.
func TestWrongRecipePages(t *testing.T) {
	t.Parallel()
	right := "# A\n\nIs it.\n\n## When to use it\n\nNow.\n\n## Code\n\n```go\na()\n```\n\n## What is true after failure\n\nAll.\n\n" +
		"## On the wire\n\nSee [b](internals/b.md).\n\n## Options\n\nNone.\n"
	if wrong := wrongRecipe(right); len(wrong) > 0 {
		t.Fatalf("a page of the right shape: %q", wrong)
	}
	for _, change := range [][2]string{
		{"Is it.", ""},
		{"Now.", ""},
		{"## When to use it\n\nNow.\n\n", ""},
		{"## Options\n\nNone.\n", ""},
		{"## Options\n", "## Options\n\nNone.\n\n## How do I\n"},
		{"## Options\n", "### Options\n"},
		{"## On the wire\n\nSee [b](internals/b.md).\n\n## Options\n\nNone.\n", "## Options\n\nNone.\n\n## On the wire\n\nSee [b](internals/b.md).\n"},
		{"```go\n", "```sh\n"},
		{"internals/b.md", "b.md"},
		{"All.", strings.Repeat("All. ", mostRecipeWords)},
	} {
		if !strings.Contains(right, change[0]) {
			t.Fatalf("the page has no %q", change[0])
		}
		if wrong := wrongRecipe(strings.Replace(right, change[0], change[1], 1)); len(wrong) == 0 {
			t.Errorf("%q in place of %q is not noticed", change[1], change[0])
		}
	}
}
