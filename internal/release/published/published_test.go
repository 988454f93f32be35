package published_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/release/published"
)

// A module comes behind those that it requires. Tests, tools and examples are not published.
func TestModules(t *testing.T) {
	t.Parallel()
	all, err := published.Modules("../../..")
	if err != nil {
		t.Fatal(err)
	}
	var before []string
	for _, m := range all {
		for _, r := range m.Requires {
			if !slices.Contains(before, r) {
				t.Errorf("%s stands before %s, which it requires", m.Path, r)
			}
		}
		before = append(before, m.Path)
	}
	for _, dir := range []string{"", "/client/kerberos", "/cmd/docent", "/integration/zkcontainer", "/observe/oteldocent", "/observe/promdocent"} {
		if !slices.Contains(before, published.Root+dir) {
			t.Errorf("%s is not published", published.Root+dir)
		}
	}
	for _, dir := range []string{"/bench", "/integration", "/internal/release", "/observe/live", "/tools", "/docs/examples/containers"} {
		if slices.Contains(before, published.Root+dir) {
			t.Errorf("%s is published", published.Root+dir)
		}
	}
}

// Modules that could not be fetched or built by others are refused.
func TestRefusedModules(t *testing.T) {
	t.Parallel()
	const head = "module " + published.Root
	kept := map[string]string{
		"bench": head + "/bench", "docs/examples/a": head + "/docs/examples/a", "integration": head + "/integration",
		"internal/a": head + "/internal/a", "observe/live": head + "/observe/live", "tools": head + "/tools", ".": head,
	}
	for _, c := range []struct{ dir, mod, want string }{
		{"later", head + "/later", ""},
		{"later", head + "/other", "must be called"},
		{"later", head + "/later\n\nrequire " + published.Root + "/bench v0.0.0", "not published"},
		{"tools", "", "list of modules that are not published"}, // none is there
	} {
		root := t.TempDir()
		mods := maps.Clone(kept)
		mods[c.dir] = c.mod
		for dir, mod := range mods {
			if mod == "" {
				continue
			}
			if err := os.MkdirAll(filepath.Join(root, dir), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, dir, "go.mod"), []byte(mod+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := published.Modules(root); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: error %v, want %q", c.dir, c.mod, err, c.want)
		}
	}
}
