package nodes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/internal/testrig"
	"github.com/docent-go/docent/zktest"
)

// The context of Start ends, Close begins, and then Start gives up: one order of the three.
func TestCloseBeforeStartGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := testrig.Connect(t.Context(), t, "zk", zktest.NewServer(t).DialContext)
		defer func() { _ = c.Close() }()
		n, err := NewPersistentNode(c, Ephemeral, "/n", nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := n.begin(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		life := n.close() // Close
		n.stop()          // Start, which returns ctx's error
		if err := n.closed(t.Context(), life); err != nil {
			t.Error(err)
		}
		if !n.over {
			t.Errorf("closed, and not over: %+v", n.status)
		}
		if err := n.Start(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("Start after Close: %v", err)
		}
		_ = n.Close()
	})
}
