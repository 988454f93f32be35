// Package published knows which modules of the repository are published with one number.
package published

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// Root is the path of the library's own module. The paths of all others begin with it.
const Root = "github.com/docent-go/docent"

// kept are the directories of modules that nobody imports. A directory that ends in /... stands
// for all modules below it. Every other module is published.
var kept = []string{
	"bench",
	"docs/examples/...",
	"integration",
	"internal/...",
	"observe/live",
	"tools",
}

// Module is one module of the repository.
type Module struct {
	Dir      string   // its directory with slashes, "." for the library
	Path     string   // as others import it
	Requires []string // paths of the modules of this repository that it requires
}

// Modules returns the published modules below root. A module comes behind those that it requires.
func Modules(root string) ([]Module, error) {
	var all []Module
	used := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && strings.HasPrefix(entry.Name(), "."), entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case entry.IsDir() || entry.Name() != "go.mod":
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		if rule := keeps(dir); rule != "" {
			used[rule] = true
			return nil
		}
		m, err := read(file, dir)
		all = append(all, m)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, rule := range kept {
		if !used[rule] {
			return nil, fmt.Errorf("no module is in %s, which the list of modules that are not published names", rule)
		}
	}
	return ordered(all)
}

// keeps returns the rule by which the module in dir is not published, if there is one.
func keeps(dir string) string {
	for _, rule := range kept {
		if above, below := strings.CutSuffix(rule, "/..."); dir == rule || below && strings.HasPrefix(dir, above+"/") {
			return rule
		}
	}
	return ""
}

// read reads a go.mod.
func read(file, dir string) (Module, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Module{}, err
	}
	parsed, err := modfile.Parse(file, text, nil)
	if err != nil {
		return Module{}, err
	}
	m := Module{Dir: dir, Path: path.Join(Root, dir)}
	if parsed.Module == nil || parsed.Module.Mod.Path != m.Path {
		return Module{}, fmt.Errorf("%s: the module must be called %s, or nobody can fetch it from this repository", file, m.Path)
	}
	for _, r := range parsed.Require {
		if Ours(r.Mod.Path) {
			m.Requires = append(m.Requires, r.Mod.Path)
		}
	}
	return m, nil
}

// Ours reports whether a module or package is of this repository.
func Ours(path string) bool { return path == Root || strings.HasPrefix(path, Root+"/") }

var errCircle = errors.New("modules of this repository require each other, or one that is not published")

// ordered puts each module behind those that it requires.
func ordered(all []Module) ([]Module, error) {
	slices.SortFunc(all, func(a, b Module) int { return cmp.Compare(a.Dir, b.Dir) })
	var sorted []Module
	done := map[string]bool{}
	for len(sorted) < len(all) {
		before := len(sorted)
		for _, m := range all {
			if !done[m.Path] && !slices.ContainsFunc(m.Requires, func(p string) bool { return !done[p] }) {
				done[m.Path] = true
				sorted = append(sorted, m)
			}
		}
		if len(sorted) == before {
			return nil, errCircle
		}
	}
	return sorted, nil
}
