package inside_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/inside"
)

type (
	aClient  struct{}
	aSession struct{}
	anOp     struct{}
)

// What is provided for other types than it is asked for stops the program, and
// says both.
func TestOf(t *testing.T) { //nolint:paralleltest // what is provided is the process's
	t.Cleanup(inside.Withdraw) // for -count=2
	refused := func() (said string) {
		defer func() { said = fmt.Sprint(recover()) }()
		inside.Of[aClient, aSession, anOp]()
		return ""
	}
	if said := refused(); !strings.Contains(said, "provides <nil>, and not inside.Functions") {
		t.Errorf("of nothing: %s", said)
	}
	type node = inside.Node[aClient]
	_ = inside.Provide(inside.Functions[aClient, aSession, anOp]{
		CreateAndList: func(_ context.Context, _ *aSession, n node) (inside.Entry, error) {
			return inside.Entry{Path: n.Dir}, nil
		},
	})
	e, err := inside.Of[aClient, aSession, anOp]().CreateAndList(t.Context(), nil, node{Dir: "/d"})
	if err != nil || e.Path != "/d" {
		t.Errorf("%+v, %v", e, err)
	}
	_ = inside.Provide(inside.Functions[aClient, aSession, string]{})
	if said := refused(); !strings.Contains(said, ",string], and not inside.Functions") {
		t.Errorf("of other types: %s", said)
	}
}
