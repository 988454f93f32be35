package zkerrorcompare

import (
	"go/types"
	"slices"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/docent-go/docent/cmd/docentvet/internal/code"
)

// Each error that is said to be returned as it is, is one.
func TestAsTheyAre(t *testing.T) {
	t.Parallel()
	var paths []string
	for room := range asTheyAre {
		paths = append(paths, code.Module+room)
	}
	slices.Sort(paths)
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadTypes}, paths...)
	if err != nil || len(loaded) != len(paths) {
		t.Fatalf("%v, %v", loaded, err)
	}
	for _, pkg := range loaded {
		if !code.IsLibrary(pkg.Types) {
			t.Errorf("%s is no package of the library", pkg)
		}
		for _, name := range asTheyAre[pkg.PkgPath[len(code.Module):]] {
			if v, ok := pkg.Types.Scope().Lookup(name).(*types.Var); !ok || !isError(v.Type()) {
				t.Errorf("%s.%s is no error", pkg, name)
			}
		}
	}
}
