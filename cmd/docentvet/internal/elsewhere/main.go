// Command elsewhere vets modules for another system and processor, tests included.
//
//	elsewhere GOOS/GOARCH DIR...
//
// It reads all that they import from source and compiles nothing: for one system that takes a
// sixth of what go vet takes, which has to compile it. It ends with 1 if it finds anything, and
// with 2 if it cannot look.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: elsewhere GOOS/GOARCH DIR...")
		os.Exit(2)
	}
	status := 0
	for _, dir := range os.Args[2:] {
		fmt.Println(dir, "for", os.Args[1])
		found, err := look(os.Stdout, os.Args[1], dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "elsewhere:", err)
			os.Exit(2)
		}
		if found {
			status = 1
		}
	}
	os.Exit(status)
}

// look vets the module in dir for a system, and reports whether it found something.
func look(out io.Writer, system, dir string) (found bool, err error) {
	goos, goarch, ok := strings.Cut(system, "/")
	if !ok {
		return false, fmt.Errorf("%q is not GOOS/GOARCH", system)
	}
	roots, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax | packages.NeedModule,
		Tests: true,
		Dir:   dir,
		Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
	}, "./...")
	if err != nil {
		return false, err
	}
	if len(roots) == 0 {
		return false, errors.New(dir + " has no packages")
	}
	packages.Visit(roots, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			found = true
			_, _ = fmt.Fprintln(out, e)
		}
	})
	if found {
		return true, nil
	}
	graph, err := checker.Analyze(suite, roots, nil)
	if err != nil {
		return false, err
	}
	for act := range graph.All() {
		found = found || act.IsRoot && (act.Err != nil || len(act.Diagnostics) > 0)
	}
	return found, graph.PrintText(out, -1)
}
