package recipes_test

import (
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/recipes"
)

// An option that has no meaning for a lock does not compile. The test asks
// reflect whether the option's type is assignable to the constructor's
// parameter, which is the compiler's rule.
func TestOptionsFitTheirConstructors(t *testing.T) {
	t.Parallel()
	constructors := map[string]any{
		"InterProcessMutex":              recipes.NewInterProcessMutex,
		"InterProcessReadWriteLock":      recipes.NewInterProcessReadWriteLock,
		"InterProcessSemaphoreV2":        recipes.NewInterProcessSemaphoreV2,
		"InterProcessSemaphoreFromCount": recipes.NewInterProcessSemaphoreV2FromCount,
		"InterProcessSemaphoreMutex":     recipes.NewInterProcessSemaphoreMutex,
	}
	queues := []string{"InterProcessMutex", "InterProcessReadWriteLock"}
	all := slices.Collect(maps.Keys(constructors))
	for _, tt := range []struct {
		option any
		fits   []string
	}{
		{recipes.WithNodeData, all},
		{recipes.WithNodeACL, all},
		{recipes.WithKazoo, queues},
		{recipes.WithoutReentry, queues},
	} {
		name := runtime.FuncForPC(reflect.ValueOf(tt.option).Pointer()).Name()
		name = name[strings.LastIndexByte(name, '.')+1:]
		option := reflect.TypeOf(tt.option).Out(0)
		for of, constructor := range constructors {
			takes := reflect.TypeOf(constructor)
			parameter := takes.In(takes.NumIn() - 1).Elem()
			if got, want := option.AssignableTo(parameter), slices.Contains(tt.fits, of); got != want {
				t.Errorf("New%s(..., %s()) compiles: %v, want %v", of, name, got, want)
			}
		}
		if option.Kind() != reflect.Interface || option.PkgPath() == "" || option.Name() == "" {
			t.Errorf("%s returns %v, which is no exported interface", name, option)
		}
	}
}
