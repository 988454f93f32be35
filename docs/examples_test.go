package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shown are the examples of a package, and the names that they call.
type shown struct {
	names []string // without the prefix Example
	calls map[string]bool
}

// examplesIn reads the examples in the tests of a package.
func examplesIn(t *testing.T, dir string) shown {
	t.Helper()
	found := shown{calls: map[string]bool{}}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, isFunc := decl.(*ast.FuncDecl)
			if !isFunc || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Example") {
				continue
			}
			found.names = append(found.names, strings.TrimPrefix(f.Name.Name, "Example"))
			ast.Inspect(f, func(n ast.Node) bool {
				if selected, is := n.(*ast.SelectorExpr); is {
					found.calls[selected.Sel.Name] = true
				}
				return true
			})
		}
	}
	return found
}

// of reports whether godoc shows an example at the name.
func (s shown) of(name string) bool {
	return slices.ContainsFunc(s.names, func(example string) bool {
		return example == name || strings.HasPrefix(example, name+"_")
	})
}

// option reports whether a function makes an option or a value to compare with, which
// its user's example shows.
func option(f *types.Func) bool {
	results := f.Signature().Results()
	return results.Len() == 1 && strings.HasSuffix(types.TypeString(results.At(0).Type(), func(*types.Package) string { return "" }), "Option")
}

// begins reports whether a program begins with the function.
func begins(name string) bool {
	return name == "Connect" || strings.HasPrefix(name, "New") || strings.HasPrefix(name, "Start")
}

// Every function that a program begins with has an example where godoc shows it: at the
// function, or at the type that it makes. Every other function that makes no option, and every
// operation, which is a method with a context, is called by an example of its package.
func TestExamples(t *testing.T) {
	t.Parallel()
	importer := imported(t)
	functions, operations := 0, 0
	for _, path := range qualifiers {
		dir, ours := strings.CutPrefix(path, module)
		if !ours || strings.HasPrefix(dir, "docs/") {
			continue
		}
		pkg, err := importer.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		examples := examplesIn(t, filepath.Join(root, filepath.FromSlash(dir)))
		for _, name := range pkg.Scope().Names() {
			object := pkg.Scope().Lookup(name)
			if !object.Exported() {
				continue
			}
			switch object := object.(type) {
			case *types.Func:
				functions++
				made := strings.TrimPrefix(strings.TrimPrefix(name, "New"), "Start")
				if begins(name) && !examples.of(name) && !examples.of(made) {
					t.Errorf("%s.%s has no example", pkg.Name(), name)
				}
				if !option(object) && !begins(name) && !examples.calls[name] {
					t.Errorf("no example of package %s calls %s", pkg.Name(), name)
				}
			case *types.TypeName:
				for method := range types.NewMethodSet(types.NewPointer(object.Type())).Methods() {
					f, _ := method.Obj().(*types.Func)
					params := f.Signature().Params()
					if !f.Exported() || params.Len() == 0 || params.At(0).Type().String() != "context.Context" {
						continue
					}
					operations++
					if !examples.calls[f.Name()] {
						t.Errorf("no example of package %s calls %s.%s", pkg.Name(), name, f.Name())
					}
				}
			}
		}
	}
	t.Logf("%d functions, %d operations", functions, operations)
	looked := slices.Collect(maps.Values(qualifiers))
	for dir := range packages(t) {
		// The functions of locktest take a *testing.T, which an example does not have.
		hidden := strings.Contains(dir, "internal") || dir == "recipes/locktest" || strings.HasPrefix(dir, "cmd")
		if !hidden && !slices.Contains(looked, module+dir) {
			t.Errorf("this test does not look for the examples of %s: add it to the qualifiers of code_test.go", dir)
		}
	}
}
