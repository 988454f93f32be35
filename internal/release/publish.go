package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"github.com/docent-go/docent/internal/release/published"
)

// export copies the commit that is checked out, and refuses what is not committed.
func (r *rehearsal) export(ctx context.Context, root string) error {
	status, err := output(ctx, root, nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" {
		return fmt.Errorf("not everything is committed:\n%s", status)
	}
	tar := r.in("tree.tar")
	if err := os.MkdirAll(r.in("tree"), 0o750); err != nil {
		return err
	}
	if _, err := output(ctx, root, nil, "git", "archive", "-o", tar, "HEAD"); err != nil {
		return err
	}
	if _, err := output(ctx, r.in("tree"), nil, "tar", "-xf", tar); err != nil {
		return err
	}
	if err := os.Remove(tar); err != nil {
		return err
	}
	r.modules, err = published.Modules(r.in("tree"))
	return err
}

// notes writes what is new, from the changelog.
func (r *rehearsal) notes() error {
	changelog, err := os.ReadFile(r.in("tree", "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, err := notesOf(string(changelog), r.version)
	if err != nil {
		return err
	}
	r.say("the notes have %d lines", strings.Count(text, "\n"))
	return os.WriteFile(r.in("notes.md"), []byte(text), 0o600)
}

// early is the heading of what concerns no version: what has changed before the first one.
const early = "\n### For programs that import a commit\n"

// notesOf is the section of a version, up to the heading early. If there is no such section, it is
// what is not released yet.
func notesOf(changelog, version string) (string, error) {
	_, section, found := strings.Cut(changelog, "\n## ["+strings.TrimPrefix(version, "v")+"]")
	if !found {
		_, section, _ = strings.Cut(changelog, "\n## [Unreleased]")
	}
	_, section, _ = strings.Cut(section, "\n") // the date
	section, _, _ = strings.Cut(section, "\n## [")
	section, _, _ = strings.Cut(section, early)
	for line := range strings.Lines(section) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return "# Docent " + version + "\n\n" + strings.TrimSpace(section) + "\n", nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md says nothing of %s", version)
}

// publish makes of each module what is published, and puts it into the proxy.
func (r *rehearsal) publish(ctx context.Context) error {
	license, err := os.ReadFile(r.in("tree", "LICENSE"))
	if err != nil {
		return err
	}
	for _, m := range r.modules {
		dir := r.in("tree", filepath.FromSlash(m.Dir))
		file := filepath.Join(dir, "go.mod")
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if text, err = rewritten(file, text, r.version); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
		// The go command takes the license of the repository for a module without one, too.
		if _, err := os.Stat(filepath.Join(dir, "LICENSE")); errors.Is(err, fs.ErrNotExist) {
			if err := os.WriteFile(filepath.Join(dir, "LICENSE"), license, 0o600); err != nil {
				return err
			}
		}
		if err := r.goes(ctx, dir, "mod", "tidy"); err != nil {
			return err
		}
		if err := r.pack(m, dir); err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
		r.say("packed %s", m.Path)
	}
	return nil
}

// rewritten is a go.mod without replace, that requires the modules of this repository at a version.
func rewritten(file string, text []byte, version string) ([]byte, error) {
	mod, err := modfile.Parse(file, text, nil)
	if err != nil {
		return nil, err
	}
	for _, old := range mod.Replace {
		if !published.Ours(old.Old.Path) {
			return nil, fmt.Errorf("%s replaces %s: those who import the module would get another one", file, old.Old.Path)
		}
		if err := mod.DropReplace(old.Old.Path, old.Old.Version); err != nil {
			return nil, err
		}
	}
	for _, required := range mod.Require {
		if published.Ours(required.Mod.Path) {
			if err := mod.AddRequire(required.Mod.Path, version); err != nil {
				return nil, err
			}
		}
	}
	mod.Cleanup()
	return mod.Format()
}

// pack puts a module into the proxy.
func (r *rehearsal) pack(m published.Module, dir string) error {
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	at := r.in("proxy", filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(at, 0o750); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	info := fmt.Sprintf("{%q:%q,%q:%q}\n", "Version", r.version, "Time", r.begun.UTC().Format(time.RFC3339))
	for name, text := range map[string]string{"list": r.version + "\n", r.version + ".info": info, r.version + ".mod": string(mod)} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	zip, err := os.Create(filepath.Join(at, r.version+".zip"))
	if err != nil {
		return err
	}
	return errors.Join(modzip.CreateFromDir(zip, module.Version{Path: m.Path, Version: r.version}, dir), zip.Close())
}
