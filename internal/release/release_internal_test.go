package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/release/published"
)

// The notes are the section of the version, or what is not released yet, and nothing else.
func TestNotes(t *testing.T) {
	t.Parallel()
	const changelog = "# Changelog\n\nText.\n\n## [Unreleased]\n\n- new\n\n### For programs that import a commit\n\n- old\n\n## [0.2.0] - 2026-12-01\n\n- two\n\n## [0.1.0]\n\n- one\n"
	for version, want := range map[string]string{
		"v0.3.0": "# Docent v0.3.0\n\n- new\n", "v0.2.0": "# Docent v0.2.0\n\n- two\n", "v0.1.0": "# Docent v0.1.0\n\n- one\n",
	} {
		if got, err := notesOf(changelog, version); err != nil || got != want {
			t.Errorf("%s: %q, error %v, want %q", version, got, err, want)
		}
	}
	for _, nothing := range []string{
		"# Changelog\n\n## [Unreleased]\n\n## [0.1.0]\n\n- one\n",
		"# Changelog\n\n## [Unreleased]\n\n### Added\n\n### Fixed\n\n## [0.1.0]\n\n- one\n",
		"# Changelog\n\n## [Unreleased]\n\n- three\n\n## [0.2.0]\n\n## [0.1.0]\n\n- one\n",
	} {
		if text, err := notesOf(nothing, "v0.2.0"); err == nil {
			t.Errorf("a release of which nothing is said has the notes %q", text)
		}
	}
}

// What is published has no replace, and requires its kin at the version.
func TestRewritten(t *testing.T) {
	t.Parallel()
	const zero = "v0.0.0-00010101000000-000000000000"
	mod := "module " + published.Root + "/x\n\ngo 1.25.0\n\nreplace " + published.Root + " => ../\n\nrequire (\n\t" + published.Root + " " + zero + "\n\texample.com/a v1.2.3\n)\n"
	text, err := rewritten("go.mod", []byte(mod), "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text); strings.Contains(got, "replace") || strings.Contains(got, zero) ||
		!strings.Contains(got, published.Root+" v0.1.0") || !strings.Contains(got, "example.com/a v1.2.3") {
		t.Errorf("%s", got)
	}
	if _, err := rewritten("go.mod", []byte(mod+"\nreplace example.com/a => example.com/b v1.0.0\n"), "v0.1.0"); err == nil {
		t.Error("a replace of another's module is dropped without a word")
	}
}

// A page's program is all of its blocks of Go, in order, and no others.
func TestPasted(t *testing.T) {
	t.Parallel()
	if got := pasted("a\n```go\none\n```\n```sh\nno\n```\n```go\ntwo\n```\n"); got != "one\n\ntwo\n" {
		t.Errorf("%q", got)
	}
}

// What is no version, and what is not committed, is refused before anything is made.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {""}, {"0.1"}, {"next"}, {"0.1.0", "0.2.0"}} {
		if err := rehearse(t.Context(), "../..", t.TempDir(), args, true); err == nil || !strings.Contains(err.Error(), "version") {
			t.Errorf("%q: error %v", args, err)
		}
	}
	root := t.TempDir()
	if _, err := output(t.Context(), root, nil, "git", "init", "-q"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := rehearse(t.Context(), root, t.TempDir(), []string{"0.1.0"}, true); err == nil || !strings.Contains(err.Error(), "not everything is committed") {
		t.Errorf("error %v", err)
	}
}
