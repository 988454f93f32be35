package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// packages maps the directory of every package of the library to its source,
// without tests.
func packages(t *testing.T) map[string]string {
	t.Helper()
	source := map[string]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "../docs" || strings.HasPrefix(d.Name(), ".") && path != ".."):
			return fs.SkipDir
		case d.IsDir():
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != ".." {
				return fs.SkipDir // another module
			}
		case strings.HasSuffix(path, ".go") && (!strings.HasSuffix(path, "_test.go") || strings.Contains(path, "simulation")):
			dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")
			source[dir] += read(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(source, "..")
	return source
}

// Every package has its row.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	page := read(t, "architecture.md")
	source := packages(t)
	for dir := range source {
		if !strings.Contains(page, "| `"+dir+"` |") {
			t.Errorf("architecture.md has no row for the package %s", dir)
		}
	}
	for _, room := range regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\| .* \\| .* \\|$").FindAllStringSubmatch(page, -1) {
		if source[room[1]] == "" {
			t.Errorf("architecture.md has a row for %s, which is no package", room[1])
		}
	}
}

// What the pages about the code name exists.
func TestArchitectureNames(t *testing.T) {
	t.Parallel()
	source := packages(t)
	for _, path := range []string{"architecture.md", "internals/goroutines.md"} {
		namesExist(t, path, source)
	}
}

// namesExist looks for the files and the members of types that a page names.
func namesExist(t *testing.T, path string, source map[string]string) {
	t.Helper()
	page := read(t, path)
	for _, file := range regexp.MustCompile("`([a-z/]+/[a-z_]+\\.go)`").FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join("..", file[1])); err != nil {
			t.Errorf("%s names %s: %v", path, file[1], err)
		}
	}
	foreign := []string{"context", "zk"} // packages of others
	for _, name := range regexp.MustCompile("`([a-zA-Z]+)\\.([a-zA-Z]+)`").FindAllStringSubmatch(page, -1) {
		if owner, member := name[1], name[2]; !slices.Contains(foreign, owner) && !declared(source, owner, member) {
			t.Errorf("%s names %s.%s, which is declared nowhere", path, owner, member)
		}
	}
}

// The row of a package names the packages of this module that it imports. A name may
// be the end of a path.
func TestArchitectureImports(t *testing.T) {
	t.Parallel()
	source := packages(t)
	rows := regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\| .* \\| (.*) \\|$").FindAllStringSubmatch(read(t, "architecture.md"), -1)
	if len(rows) < len(source) {
		t.Fatalf("%d rows for %d packages", len(rows), len(source))
	}
	for _, row := range rows {
		var want, got []string
		for _, name := range regexp.MustCompile("`([a-z/]+)`").FindAllStringSubmatch(row[2], -1) {
			want = append(want, name[1])
		}
		for _, path := range regexp.MustCompile(`"`+regexp.QuoteMeta(module)+`([a-z/]+)"`).FindAllStringSubmatch(source[row[1]], -1) {
			if name := path[1]; name != row[1] && !slices.Contains(got, name) {
				got = append(got, name)
			}
		}
		for _, path := range got {
			if !slices.ContainsFunc(want, func(name string) bool { return path == name || strings.HasSuffix(path, "/"+name) }) {
				t.Errorf("%s imports %s; architecture.md names %q", row[1], path, want)
			}
		}
		for _, name := range want {
			if !slices.ContainsFunc(got, func(path string) bool { return path == name || strings.HasSuffix(path, "/"+name) }) {
				t.Errorf("architecture.md says that %s imports %s; it imports %q", row[1], name, got)
			}
		}
	}
}

// The picture has the imports of the packages that it shows, and no others.
func TestArchitecturePicture(t *testing.T) {
	t.Parallel()
	source := packages(t)
	_, picture, _ := strings.Cut(read(t, "architecture.md"), "```mermaid\n")
	picture, _, _ = strings.Cut(picture, "```")
	rooms, drawn := map[string]string{}, map[string]bool{}
	for _, room := range regexp.MustCompile(`(\w+)\["([a-z/]+)"\]`).FindAllStringSubmatch(picture, -1) {
		if rooms[room[1]] = room[2]; source[room[2]] == "" {
			t.Errorf("%s is no package", room[2])
		}
	}
	for _, arrow := range regexp.MustCompile(`(?m)^  (\w+)\S* --> (\w+)`).FindAllStringSubmatch(picture, -1) {
		drawn[rooms[arrow[1]]+" "+rooms[arrow[2]]] = true
	}
	if len(drawn) == 0 {
		t.Fatal("there is no picture")
	}
	for _, from := range rooms {
		for _, to := range rooms {
			if imports := strings.Contains(source[from], `"`+module+to+`"`); imports != drawn[from+" "+to] {
				t.Errorf("%s imports %s: %v, and drawn: %v", from, to, imports, !imports)
			}
		}
	}
}

// declared reports whether member is a method or field of a type, or declared by
// a package, that is called owner.
func declared(source map[string]string, owner, member string) bool {
	method := regexp.MustCompile(fmt.Sprintf(`\nfunc \(\w+ \*?%s(\[\w+\])?\) %s\(`, owner, member))
	top := regexp.MustCompile(fmt.Sprintf(`(?m)^(func |type |var |const |\t)%s\b`, member))
	field := regexp.MustCompile(fmt.Sprintf(`(?m)^\t(\w+, )*%s\b`, member))
	for dir, text := range source {
		if filepath.Base(dir) == owner && top.MatchString(text) {
			return true
		}
		if _, of, found := strings.Cut(text, "\ntype "+owner+" "); found {
			of, _, _ = strings.Cut(of, "\n}")
			if field.MatchString(of) {
				return true
			}
		}
		if strings.Contains(text, ") "+member+"(") && method.MatchString(text) {
			return true
		}
	}
	return false
}

// A program outside the repository can import a nested module at any commit: the library
// that the nested module requires is older than any commit, so that the program's choice
// counts. Without a replace the nested module could not be built here.
func TestNestedModulesCanBeImported(t *testing.T) {
	t.Parallel()
	required := regexp.MustCompile(`(?m)^(?:require|\t)\s*github\.com/docent-go/docent(?:/\S+)? (v\S+)`)
	found := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != "..":
			return fs.SkipDir // caches
		case d.Name() != "go.mod":
			return nil
		}
		text := read(t, path)
		for _, of := range required.FindAllStringSubmatch(text, -1) {
			found++
			if of[1] != "v0.0.0-00010101000000-000000000000" || !strings.Contains(text, "replace github.com/docent-go/docent =>") {
				t.Errorf("%s: %s; see Releasing in CONTRIBUTING.md", path, strings.TrimSpace(of[0]))
			}
		}
		return nil
	})
	if err != nil || found < 7 {
		t.Errorf("%d requirements of the library, %v", found, err)
	}
}

// mostFiles bounds a package, so that a reader can keep its files in mind.
const mostFiles = 30

// No package of any module has more source files than that, without tests.
func TestPackageSize(t *testing.T) {
	t.Parallel()
	files := sources(t)
	if len(files) < 60 || files["client"] < 20 || files["cmd/docent"] < 20 {
		t.Fatalf("files are missing: %v", files)
	}
	for dir, n := range files {
		if n > mostFiles {
			t.Errorf("%s has %d source files, more than %d", dir, n, mostFiles)
		}
	}
}

// sources counts the source files of each directory of the repository.
func sources(t *testing.T) map[string]int {
	t.Helper()
	files := map[string]int{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || len(name) > 2 && strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case !entry.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			dir, err := filepath.Rel("..", filepath.Dir(path))
			if err != nil {
				return err
			}
			files[filepath.ToSlash(dir)]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
