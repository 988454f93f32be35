package code_test

import (
	"go/types"
	"slices"
	"strings"
	"testing"

	_ "github.com/go-zookeeper/zk" // for the bad code of the checks
	"golang.org/x/tools/go/packages"

	"github.com/docent-go/docent/cmd/docentvet/internal/code"
	"github.com/docent-go/docent/recipes"
)

var _ recipes.AnyHold // the package that is read below

// What the checks know of package recipes is what the package has: each method that gives a
// hold is one that acquires, and each type that a program has to release is a hold.
func TestRecipes(t *testing.T) {
	t.Parallel()
	got, err := packages.Load(&packages.Config{Mode: packages.LoadTypes}, code.Recipes)
	if err != nil || len(got) != 1 || len(got[0].Errors) > 0 {
		t.Fatalf("%v, %v", got, err)
	}
	scope := got[0].Types.Scope()
	var holds, acquiring []string
	releasing := map[string]bool{}
	for _, name := range scope.Names() {
		o, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || !o.Exported() {
			continue
		}
		methods := types.NewMethodSet(types.NewPointer(o.Type()))
		if types.IsInterface(o.Type()) {
			methods = types.NewMethodSet(o.Type())
		}
		if methods.Lookup(nil, "Release") != nil {
			if holds = append(holds, name); !code.IsHold(o.Type()) {
				t.Errorf("%s has to be released, and is no hold", name)
			}
		}
		for m := range methods.Methods() {
			results := m.Type().(*types.Signature).Results() //nolint:forcetypeassert,errcheck // of a method
			releasing[m.Obj().Name()] = true
			if m.Obj().Exported() && results.Len() == 2 && code.IsHold(results.At(0).Type()) && !slices.Contains(acquiring, m.Obj().Name()) {
				acquiring = append(acquiring, m.Obj().Name())
			}
		}
	}
	slices.Sort(acquiring)
	if !slices.Equal(holds, code.Holds) || !slices.Equal(acquiring, code.Acquiring) {
		t.Errorf("package recipes has the holds %q, given by %q", holds, acquiring)
	}
	for _, name := range code.Releasing {
		if !releasing[name] {
			t.Errorf("no type has the method %s", name)
		}
	}
	if !code.IsLibrary(got[0].Types) || code.IsLibrary(types.NewPackage(strings.TrimSuffix(code.Recipes, "recipes")+"docs/examples/ids", "main")) {
		t.Error("what is the library, and what a program")
	}
}
