package shared_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/docent-go/docent/internal/testrig"
)

// rig is a server in a bubble of virtual time, with what tests of this package need besides.
type rig struct{ *testrig.Rig }

func bubble(t *testing.T, f func(*rig)) {
	t.Helper()
	testrig.Bubble(t, func(r *testrig.Rig) { f(&rig{r}) })
}

var ourFrames = regexp.MustCompile(`docent/recipes/shared\.`)

func name(i int) string { return fmt.Sprintf("c%d", i) }
