package docs_test

import (
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	pathName = regexp.MustCompile("^(bench|client|cmd|docs|fence|integration|internal|observe|recipes|retry|scripts|tools|zktest)/[A-Za-z0-9_./-]+$")
	testName = regexp.MustCompile(`^(Test|Example|Benchmark|Fuzz)[A-Z_]\w*`)
	apiName  = regexp.MustCompile(`\b(barrier|cache|client|discovery|discoveryhttp|fence|nodes|observe|recipes|retry|shared|zktest)\.(\p{Lu}\w*)(?:\.(\p{Lu}\w*))?`)
)

// inlines are the words that a page sets as code within its sentences.
func inlines(page string) []string {
	var found []string
	for _, block := range proseLines(page) {
		for _, code := range inlineCode.FindAllString(block, -1) {
			found = append(found, strings.Trim(code, "`"))
		}
	}
	return found
}

// proseLines are the lines of a page outside of its blocks of code.
func proseLines(page string) []string {
	var lines []string
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced {
			lines = append(lines, line)
		}
	}
	return lines
}

// testSource is the source of all tests of the repository.
func testSource(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, "_test.go") {
			all.WriteString(read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// hasMember tells whether a type has that field or method.
func hasMember(object types.Object, member string) bool {
	found, _, _ := types.LookupFieldOrMethod(object.Type(), true, object.Pkg(), member)
	return found != nil
}

// What a page names is there: files, tests, and the names of the packages.
func TestNames(t *testing.T) {
	t.Parallel()
	tests := testSource(t)
	packages := imported(t)
	seen := 0
	for _, path := range pages(t) {
		for _, code := range inlines(read(t, path)) {
			if pathName.MatchString(code) && !strings.HasSuffix(code, "...") {
				seen++
				if _, err := os.Stat(filepath.Join(root, code)); err != nil {
					t.Errorf("%s: `%s`: %v", path, code, err)
				}
			}
			if name := testName.FindString(code); name != "" {
				seen++
				if !strings.Contains(tests, "func "+name+"(") {
					t.Errorf("%s: there is no %s", path, name)
				}
			}
			for _, m := range apiName.FindAllStringSubmatch(code, -1) {
				seen++
				pkg, err := packages.Import(qualifiers[m[1]])
				if err != nil {
					t.Fatal(err)
				}
				object := pkg.Scope().Lookup(m[2])
				if object == nil || !object.Exported() || m[3] != "" && !hasMember(object, m[3]) {
					t.Errorf("%s: there is no %s", path, m[0])
				}
			}
		}
	}
	if seen == 0 {
		t.Error("the pages name nothing")
	}
	t.Logf("%d names", seen)
}
