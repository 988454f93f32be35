package harness_test

import (
	"context"
	"testing"
	"time"

	"github.com/docent-go/docent/integration/harness"
)

// limited is the test's context with a limit, so that a server that does not come
// back fails the test with a reason.
func limited(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestHarnessEnsemble(t *testing.T) {
	ctx := limited(t, 2*time.Minute)
	e := harness.StartEnsemble(ctx, t, 3)
	leader, err := e.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("leader is node %d at %s", leader.ID(), leader.Addr())
	if got := len(e.Followers(ctx)); got != 2 {
		t.Fatalf("%d followers, want 2", got)
	}
}
