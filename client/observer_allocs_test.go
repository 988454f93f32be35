package client_test

import (
	"context"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// operationAllocations is what an operation allocates beside its requests.
const operationAllocations = 0

// Hooks that are not set cost nothing.
func TestAllocationsWithoutHooks(t *testing.T) { //nolint:paralleltest // counts the allocations of the process
	srv := zktest.NewServer(t, zktest.WithLogSize(0))
	link := srv.Client("docent")
	open := func(o client.Observer) float64 {
		c, err := client.Connect(t.Context(), "zk", client.WithDialer(link.DialContext), testrig.Quiet(), client.WithObserver(o))
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseContext(t.Context()) //nolint:errcheck // the test is over
		s, err := c.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(1000, func() {
			if err := client.Nothing(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		})
	}
	if got := open(client.Observer{}); got > operationAllocations {
		t.Errorf("an operation without an observer allocates %v times, want %d at most", got, operationAllocations)
	}
	seen := func(ctx context.Context, _ client.OperationInfo) (context.Context, func(client.OperationResult)) {
		return ctx, func(client.OperationResult) {}
	}
	if got := open(client.Observer{Operation: seen}); got <= operationAllocations {
		t.Errorf("an operation that is observed allocates %v times: the test counts something else", got)
	} else {
		t.Logf("an operation that is observed allocates %v times", got)
	}
}
