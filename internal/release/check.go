package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"github.com/docent-go/docent/internal/release/published"
)

// tests are the tests that say most of a module in little time. A module that is not named runs
// all of its own.
var tests = map[string][]string{
	".":                       {"./client/zkconn", "./fence", "./observe", "./recipes/barrier", "./recipes/locktest", "./retry", "./docs/examples/quickstart"},
	"cmd/docent":              {"-run", "Serve|Node|Paths|Flag", "."},
	"integration/zkcontainer": nil, // they need Docker
}

// check builds, vets and tests each module as it is in its zip.
func (r *rehearsal) check(ctx context.Context) error {
	for _, m := range r.modules {
		dir := r.in("unpacked", strings.ReplaceAll(strings.Replace(m.Dir, ".", "docent", 1), "/", "+"))
		zip := r.in("proxy", filepath.FromSlash(m.Path), "@v", r.version+".zip")
		if err := modzip.Unzip(dir, module.Version{Path: m.Path, Version: r.version}, zip); err != nil {
			return err
		}
		steps := [][]string{{"build", "./..."}, {"vet", "./..."}}
		switch args, named := tests[m.Dir]; {
		case r.quick:
			steps = steps[:1]
		case !named:
			steps = append(steps, []string{"test", "-short", "./..."})
		case args != nil:
			steps = append(steps, append([]string{"test", "-short"}, args...))
		}
		for _, args := range steps {
			if err := r.goes(ctx, dir, args...); err != nil {
				return err
			}
		}
		r.say("checked %s", m.Path)
	}
	return nil
}

// outside gets each module into one outside of the repository, imports all of its packages, and
// runs the programs that README.md and docs/quickstart.md show.
func (r *rehearsal) outside(ctx context.Context) error {
	for _, m := range r.modules {
		if err := r.get(ctx, m); err != nil {
			return err
		}
	}
	r.say("got each module into an empty one")
	if err := r.readme(ctx); err != nil {
		return err
	}
	return r.quickstart(ctx)
}

// get imports every package of a module, or installs its programs.
func (r *rehearsal) get(ctx context.Context, m published.Module) error {
	user := r.in("user", strings.ReplaceAll(strings.Replace(m.Dir, ".", "docent", 1), "/", "+"))
	if err := r.newModule(ctx, user, "example.com/user"); err != nil {
		return err
	}
	if err := r.goes(ctx, user, "get", m.Path+"@"+r.version); err != nil {
		return err
	}
	list, err := output(ctx, user, r.env(), "go", "list", "-find", "-f", "{{if .GoFiles}}{{.Name}} {{.ImportPath}}{{end}}", m.Path+"/...")
	if err != nil {
		return err
	}
	var program strings.Builder
	imports := 0
	program.WriteString("package main\n\nimport (\n")
	for line := range strings.Lines(list) {
		name, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "main" && m.Path == path: // a command, and no example
			if err := r.goes(ctx, user, "install", path+"@"+r.version); err != nil {
				return err
			}
		case name != "main" && !strings.Contains(path+"/", "/internal/"):
			fmt.Fprintf(&program, "\t_ %q\n", path)
			imports++
		}
	}
	program.WriteString(")\n\nfunc main() {}\n")
	if imports == 0 {
		return nil
	}
	if err := os.WriteFile(filepath.Join(user, "main.go"), []byte(program.String()), 0o600); err != nil {
		return err
	}
	if err := r.goes(ctx, user, "mod", "tidy"); err != nil {
		return err
	}
	if err := r.goes(ctx, user, "build", "."); err != nil {
		return err
	}
	all, err := output(ctx, user, r.env(), "go", "list", "-m", "-f", "{{.Path}} {{.Version}}", "all")
	if err != nil {
		return err
	}
	for line := range strings.Lines(all) {
		path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		if published.Ours(path) && version != r.version {
			return fmt.Errorf("who imports %s gets %s at %s", m.Path, path, version)
		}
	}
	return nil
}

var (
	goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")
	goGet   = regexp.MustCompile(`(?m)^ *go get (\S+)$`)
)

// pasted makes a program of the blocks of Go of a page, one after the other.
func pasted(page string) string {
	var program []string
	for _, block := range goBlock.FindAllStringSubmatch(page, -1) {
		program = append(program, block[1])
	}
	return strings.Join(program, "\n")
}

// readme builds the program that README.md shows. Without a server it cannot do its work.
func (r *rehearsal) readme(ctx context.Context) error {
	dir, _, err := r.paste(ctx, "README.md", "first")
	if err != nil {
		return err
	}
	return r.goes(ctx, dir, "vet", ".")
}

// quickstart runs the program of the page, which prints what the page says.
func (r *rehearsal) quickstart(ctx context.Context) error {
	dir, page, err := r.paste(ctx, "docs/quickstart.md", "quickstart")
	if err != nil {
		return err
	}
	printed, err := output(ctx, dir, r.env(), "go", "run", ".")
	if err != nil {
		return err
	}
	if printed == "" || !strings.Contains(page, "```\n"+printed+"```\n") {
		return fmt.Errorf("docs/quickstart.md shows other output than\n%s", printed)
	}
	r.say("the quick start, pasted as it stands, prints what the page says")
	return nil
}

// paste makes a module of the blocks of Go of a page. It gets what the page says, and nothing else.
func (r *rehearsal) paste(ctx context.Context, file, name string) (dir, page string, err error) {
	text, err := os.ReadFile(r.in("tree", filepath.FromSlash(file)))
	if err != nil {
		return "", "", err
	}
	page = string(text)
	program := pasted(page)
	get := goGet.FindStringSubmatch(page)
	if program == "" || get == nil {
		return "", "", fmt.Errorf("%s has no program, or no line with go get", file)
	}
	dir = r.in("user", "page-"+name)
	if err := r.newModule(ctx, dir, "example.com/"+name); err != nil {
		return "", "", err
	}
	if err := r.goes(ctx, dir, "get", get[1]); err != nil {
		return "", "", err
	}
	return dir, page, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600)
}

func (r *rehearsal) newModule(ctx context.Context, dir, path string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return r.goes(ctx, dir, "mod", "init", path)
}

// env has the go command fetch from the rehearsal's proxy, then from what this machine has
// fetched before, then from where it does otherwise. What it unpacks is removed at the end.
//
// With a pattern in GONOPROXY or GOPRIVATE the go command takes a module that it has fetched for the
// one that has a package below it (Go 1.26.8: "found, but does not contain package").
func (r *rehearsal) env() []string {
	cache, proxies := goEnv("GOMODCACHE"), goEnv("GOPROXY")
	return append(os.Environ(),
		"GOPROXY=file://"+r.in("proxy")+",file://"+filepath.Join(cache, "cache", "download")+","+proxies,
		"GOMODCACHE="+r.in("modules"), "GOBIN="+r.in("bin"), "GOWORK=off", "GOENV=off", "GONOPROXY=", "GOPRIVATE=",
		"GOSUMDB=off", // it has never heard of this version
		"GOFLAGS=-modcacherw -trimpath -buildvcs=false", // what is built does not depend on where, and is found again
	)
}

// goEnv is a setting of the go command.
func goEnv(name string) string {
	out, _ := exec.Command("go", "env", name).Output()
	return strings.TrimSpace(string(out))
}

// goes runs the go command, and shows what it printed if it fails.
func (r *rehearsal) goes(ctx context.Context, dir string, args ...string) error {
	_, err := output(ctx, dir, r.env(), "go", args...)
	return err
}

func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %s %s: %w\n%s%s", dir, name, strings.Join(args, " "), err, out, &problems)
	}
	return string(out), nil
}
