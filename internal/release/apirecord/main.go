// Apirecord keeps the public Go API of all published modules as text, and sees that a change of
// it is said in the changelog.
//
//	go run -C internal/release ./apirecord          # compare the record with the code (make api-check)
//	go run -C internal/release ./apirecord -write   # write it (make api)
//	go run -C internal/release ./apirecord -release # write it, and take it for released
//
// The directory api has a text for each package. What it had at the last release, or when the
// record was begun, is in api/released, with a mark for each entry of the changelog that was
// there.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", "../..", "the repository")
	write := flag.Bool("write", false, "write the record")
	release := flag.Bool("release", false, "write the record, and take it for released")
	flag.Parse()
	if err := run(*root, *write || *release, *release, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "apirecord:", err)
		os.Exit(1)
	}
}

func run(root string, write, release bool, out io.Writer) error {
	now, err := all(root)
	if err != nil {
		return err
	}
	r := repository(root)
	if write {
		if err := r.write("api", now); err != nil {
			return err
		}
	}
	if release {
		return r.release(now)
	}
	return r.check(now, out)
}

// repository is the directory of one.
type repository string

const (
	released = "api/released"
	said     = "api/released/changelog.txt"
)

// read returns the texts below a directory, by package.
func (r repository) read(dir string) (map[string][]string, error) {
	top := filepath.Join(string(r), filepath.FromSlash(dir))
	found := map[string][]string{}
	err := filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(string(r), file)
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && rel == released && dir != released:
			return fs.SkipDir
		case entry.IsDir() || rel == said || filepath.Ext(file) != ".txt":
			return nil
		}
		text, err := os.ReadFile(file)
		found[strings.TrimSuffix(strings.TrimPrefix(rel, dir+"/"), ".txt")] = strings.Split(strings.TrimSpace(string(text)), "\n")
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	return found, err
}

// write makes the texts below a directory those of the record.
func (r repository) write(dir string, now map[string][]string) error {
	before, err := r.read(dir)
	if err != nil {
		return err
	}
	for pkg := range before {
		if now[pkg] == nil {
			if err := os.Remove(filepath.Join(string(r), dir, pkg+".txt")); err != nil {
				return err
			}
		}
	}
	for pkg, lines := range now {
		file := filepath.Join(string(r), dir, filepath.FromSlash(pkg)+".txt")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// release takes the record for released, and all entries of the changelog for read.
func (r repository) release(now map[string][]string) error {
	if err := r.write(released, now); err != nil {
		return err
	}
	entries, err := r.bullets()
	if err != nil {
		return err
	}
	var marks strings.Builder
	for _, b := range entries {
		marks.WriteString(mark(b) + "\n")
	}
	return os.WriteFile(filepath.Join(string(r), said), []byte(marks.String()), 0o644)
}

func (r repository) bullets() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(string(r), "CHANGELOG.md"))
	return bullets(string(text)), err
}

// check compares the record with the code, and what has changed with the changelog.
func (r repository) check(now map[string][]string, out io.Writer) error {
	kept, err := r.read("api")
	if err != nil {
		return err
	}
	if differ(out, kept, now) {
		return errors.New("the public API differs from its record in api: run make api, and say in CHANGELOG.md what changed")
	}
	old, err := r.read(released)
	if err != nil {
		return err
	}
	if len(old) == 0 || len(now) == 0 {
		return fmt.Errorf("%d packages, and %d in %s: nothing was compared", len(now), len(old), released)
	}
	entries, err := r.bullets()
	if err != nil {
		return err
	}
	marks, err := os.ReadFile(filepath.Join(string(r), said))
	if err != nil {
		return err
	}
	read := strings.Fields(string(marks))
	entries = slices.DeleteFunc(entries, func(b string) bool { return slices.Contains(read, mark(b)) })
	missing := unsaid(changes(old, now), entries)
	for _, c := range missing {
		what, where := "is new", ""
		if c.breaking {
			what, where = "has changed or gone", " that begins with **Breaking**"
		}
		name := c.pkg
		if c.id != "" {
			name += ": " + c.id
		}
		_, _ = fmt.Fprintf(out, "%s %s: name it between backquotes in a line of CHANGELOG.md below Unreleased%s\n", name, what, where)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%d changes of the public API are not in CHANGELOG.md", len(missing))
	}
	return nil
}

// differ prints the lines that one record has and the other has not.
func differ(out io.Writer, kept, now map[string][]string) bool {
	found := false
	for _, pkg := range sorted(kept, now) {
		for _, side := range []struct {
			sign         string
			these, those []string
		}{{"-", kept[pkg], now[pkg]}, {"+", now[pkg], kept[pkg]}} {
			for _, l := range side.these {
				if !slices.Contains(side.those, l) {
					found = true
					_, _ = fmt.Fprintf(out, "%s %s: %s\n", side.sign, pkg, l)
				}
			}
		}
	}
	return found
}
