package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

// Each check reports what the comments in its bad code want, and its fixes make of that what
// stands beside it. It reports nothing in its good code.
func TestChecks(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range checks {
		t.Run(check.Name, func(t *testing.T) {
			t.Parallel()
			packages, err := filepath.Glob("internal/" + check.Name + "/testdata/*")
			if err != nil {
				t.Fatal(err)
			}
			for i := range packages {
				packages[i] = "./" + filepath.ToSlash(packages[i])
			}
			found := map[string]int{}
			for _, r := range analysistest.RunWithSuggestedFixes(t, root, check, packages...) {
				found[r.Pass.Pkg.Name()] += len(r.Diagnostics)
			}
			if len(found) < 2 || found["bad"] == 0 {
				t.Errorf("found %v", found)
			}
			for name, n := range found {
				if name != "bad" && n != 0 {
					t.Errorf("%d findings in package %s", n, name)
				}
			}
		})
	}
}

// A message is a line that says what is wrong and what to do.
func TestMessages(t *testing.T) {
	t.Parallel()
	for _, check := range checks {
		if first, rest, _ := strings.Cut(check.Doc, "\n\n"); !strings.HasPrefix(first, "find ") || rest == "" {
			t.Errorf("%s: %q", check.Name, check.Doc)
		}
	}
}

// The command finds the bad code of every check under go vet and by itself, and ends with an
// error then. In the good code it finds nothing.
func TestCommand(t *testing.T) {
	t.Parallel()
	tool := filepath.Join(t.TempDir(), "docentvet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var bad, good []string
	for _, check := range checks {
		bad = append(bad, "./internal/"+check.Name+"/testdata/bad")
		good = append(good, "./internal/"+check.Name+"/testdata/good")
	}
	for name, command := range map[string][]string{"under go vet": {"go", "vet", "-vettool=" + tool}, "alone": {tool}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.Command(command[0], append(command[1:], good...)...).CombinedOutput()
			if err != nil {
				t.Errorf("good code: %v\n%s", err, out)
			}
			out, err = exec.Command(command[0], append(command[1:], bad...)...).CombinedOutput()
			if err == nil {
				t.Error("bad code passes")
			}
			for _, dir := range bad {
				if !strings.Contains(string(out), filepath.FromSlash(strings.TrimPrefix(dir, "./"))+string(filepath.Separator)+"bad.go:") {
					t.Errorf("nothing about %s in\n%s", dir, out)
				}
			}
		})
	}
}
