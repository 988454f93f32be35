package docs_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/docent-go/docent/"

// qualifiers are the packages that a block of code may use without an import.
var qualifiers = map[string]string{
	"barrier": module + "recipes/barrier", "cache": module + "recipes/cache", "client": module + "client",
	"discovery": module + "recipes/discovery", "discoveryhttp": module + "recipes/discovery/discoveryhttp",
	"fence": module + "fence", "nodes": module + "recipes/nodes", "observe": module + "observe", "recipes": module + "recipes",
	"retry": module + "retry", "secure": module + "docs/examples/secure", "shared": module + "recipes/shared",
	"zkconn": module + "client/zkconn", "zktest": module + "zktest", "zk": "github.com/go-zookeeper/zk",
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "json": "encoding/json",
	"log": "log", "os": "os", "signal": "os/signal", "slices": "slices", "slog": "log/slog", "sql": "database/sql",
	"strings": "strings", "sync": "sync", "syscall": "syscall", "synctest": "testing/synctest", "testing": "testing", "time": "time",
	"tls": "crypto/tls", "x509": "crypto/x509",
}

// foreign are packages of modules that the core module does not depend on. Of
// them a block's syntax is checked, and of everything else in it the types too.
var foreign = map[string]string{
	"codes": "go.opentelemetry.io/otel/codes", "trace": "go.opentelemetry.io/otel/trace", "otel": "go.opentelemetry.io/otel",
	"metric": "go.opentelemetry.io/otel/sdk/metric", "otelprom": "go.opentelemetry.io/otel/exporters/prometheus",
	"zkcontainer": module + "integration/zkcontainer",
	"promhttp":    "github.com/prometheus/client_golang/prometheus/promhttp",
	"prometheus":  "github.com/prometheus/client_golang/prometheus",
	"grpc":        "google.golang.org/grpc", "grpcdocent": module + "recipes/discovery/grpcdocent",
	"oteldocent": module + "observe/oteldocent", "promdocent": module + "observe/promdocent",
}

// exported reads what the compiler has exported of the packages above.
var exported = sync.OnceValues(func() (map[string]string, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}
	if raced() {
		args = append(args, "-race") // or the go command compiles every package once more
	}
	for _, path := range qualifiers {
		args = append(args, path)
	}
	var problems bytes.Buffer
	list := exec.Command("go", args...) //nolint:noctx // The test's own time limit ends it.
	list.Stderr = &problems
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, problems.String())
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[path] = file
	}
	return files, nil
})

// raced tells whether this program was built with the race detector.
func raced() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// positions are those of everything that this package parses and imports.
var positions = token.NewFileSet()

// importAll imports each of the packages above once.
var importAll = sync.OnceValues(func() (types.Importer, error) {
	files, err := exported()
	return &serialImporter{importer: importer.ForCompiler(positions, "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("no package %s among the qualifiers of this test", path)
		}
		return os.Open(files[path])
	})}, err
})

// serialImporter lets parallel tests share an importer.
type serialImporter struct {
	mu       sync.Mutex
	importer types.Importer
}

func (i *serialImporter) Import(path string) (*types.Package, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.importer.Import(path)
}

func imported(t *testing.T) types.Importer {
	t.Helper()
	all, err := importAll()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// codeBlock is a fenced block of a page.
type codeBlock struct {
	language, text string
	line           int // of its first line of code
}

func codeBlocks(page string) []codeBlock {
	var blocks []codeBlock
	var open *codeBlock
	n := 0
	for line := range strings.Lines(page) {
		n++
		language, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open == nil:
			open = &codeBlock{language: language, line: n + 1}
		case fence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line
		}
	}
	return blocks
}

var (
	leftOutLine = regexp.MustCompile(`(?m)^[ \t]*\.\.\.[ \t]*$`)
	leftOutBody = regexp.MustCompile(`\{ \.\.\. \}`)
	importLine  = regexp.MustCompile(`(?m)^import "([^"]+)"$`)
	pathLines   = regexp.MustCompile(`^(\s*"[^"]+"\n)+$`)
)

// goPage is the code of one page, as one package: declarations one after the
// other, and statements in one function, each block inside of the one before.
// So a block may use the names of the blocks before it. Names that are the
// reader's own are declared in testdata/blocks, in a file named like the page.
type goPage struct {
	declarations, statements strings.Builder
	programs                 []string
	begun                    string // a program that goes on in the next block
	depth                    int    // of the function's blocks
}

func (p *goPage) add(path string, b codeBlock) error {
	text := leftOutLine.ReplaceAllString(b.text, "")
	text = leftOutBody.ReplaceAllString(text, "{ panic(0) }")
	place := fmt.Sprintf("\n//line %s:%d\n", path, b.line)
	if pathLines.MatchString(text) {
		p.programs = append(p.programs, "package page; import ("+place+text+")\n")
		return nil
	}
	if strings.HasPrefix(text, "package ") || p.begun != "" {
		p.begun += place[1:] + text
		if _, err := parser.ParseFile(token.NewFileSet(), "", p.begun, 0); err == nil || !unfinished(err) {
			p.programs = append(p.programs, p.begun)
			p.begun = ""
		}
		return nil
	}
	text = importLine.ReplaceAllString(text, "")
	if _, err := parser.ParseFile(token.NewFileSet(), "", "package p"+place+text, 0); err == nil {
		p.declarations.WriteString(place + text)
		return nil
	}
	_, err := parser.ParseFile(token.NewFileSet(), "", "package p; func _() {"+place+text+"}", 0)
	if err == nil {
		p.statements.WriteString("\n{" + place + text)
		p.depth++
	}
	return err
}

// unfinished reports whether all that a program lacks is its end.
func unfinished(err error) bool {
	return strings.HasSuffix(err.Error(), "found 'EOF'")
}

// source is the file of the blocks that are no programs.
func (p *goPage) source() string {
	body := p.declarations.String() + "\nfunc _() error {" + p.statements.String() + "\npanic(0)\n" + strings.Repeat("}", p.depth) + "}\n"
	var imports strings.Builder
	for _, known := range []map[string]string{qualifiers, foreign} {
		for name, path := range known {
			if regexp.MustCompile(`\b` + name + `\.\p{Lu}`).MatchString(body) {
				fmt.Fprintf(&imports, "import %s %q\n", name, path)
			}
		}
	}
	return "package page\n" + imports.String() + body
}

// compile returns what a compiler would report, but for names that are not used.
func compile(t *testing.T, sources ...string) []error {
	t.Helper()
	var files []*ast.File
	for _, source := range sources {
		file, err := parser.ParseFile(positions, "", source, parser.SkipObjectResolution)
		if err != nil {
			return []error{err}
		}
		files = append(files, file)
	}
	var found []error
	config := types.Config{Importer: imported(t), Error: func(err error) {
		var wrong types.Error
		if errors.As(err, &wrong) && wrong.Soft {
			return
		}
		for _, path := range foreign {
			if strings.Contains(err.Error(), "could not import "+path) {
				return
			}
		}
		found = append(found, err)
	}}
	_, _ = config.Check("page", positions, files, nil) // Error has every error
	return found
}

// wrongBlocks returns what is wrong with the blocks of Go of a page, and how
// many blocks there are.
func wrongBlocks(t *testing.T, path, text string) (found []error, blocks int) {
	t.Helper()
	page := goPage{}
	for _, b := range codeBlocks(text) {
		if b.language == "go" {
			blocks++
			if err := page.add(path, b); err != nil {
				found = append(found, err)
			}
		}
	}
	if page.begun != "" {
		page.programs = append(page.programs, page.begun)
	}
	for _, program := range page.programs {
		found = append(found, compile(t, program)...)
	}
	sources := []string{page.source()}
	for _, name := range []string{"common", strings.TrimSuffix(filepath.Base(path), ".md")} {
		file := filepath.Join("testdata/blocks", name+".go")
		if text, err := os.ReadFile(file); err == nil {
			sources = append(sources, "//line "+file+":1\n"+string(text))
		}
	}
	return append(found, compile(t, sources...)...), blocks
}

// Every block of Go on a page compiles.
func TestGoBlocks(t *testing.T) {
	t.Parallel()
	all := 0
	for _, path := range pages(t) {
		found, blocks := wrongBlocks(t, path, read(t, path))
		all += blocks
		for _, err := range found {
			t.Errorf("%v (names that are the reader's own belong into docs/testdata/blocks)", err)
		}
	}
	t.Logf("%d blocks", all)
	if all == 0 {
		t.Error("no page has a block of Go")
	}
}

// A block that does not compile is noticed, whatever it consists of.
func TestWrongGoBlocks(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"package main\n\nfunc main() { undefined() }",
		"func f() error { return c.NoSuchMethod() }",
		"hold, err := lock.Acquire()",
		"hold, err := lock.Acquire(ctx)\n...\nhold.NoSuchMethod()",
		"err = client.NoSuchName",
		"if err != nil {",
		"\t\"github.com/docent-go/docent/nothing\"",
	} {
		page := "# A page\n\n```go\n" + code + "\n```\n"
		if found, _ := wrongBlocks(t, "page.md", page); len(found) != 1 {
			t.Errorf("%q: the errors are %v, want one", code, found)
		} else if !strings.Contains(found[0].Error(), "page.md:") {
			t.Errorf("%q: the error %v does not name the page", code, found[0])
		}
	}
}
