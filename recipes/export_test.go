package recipes

import (
	"context"

	"github.com/docent-go/docent/client"
)

// Observed does for an acquire and its hold all that there is to observation.
func Observed(ctx context.Context, c *client.Client, h *Hold) {
	ctx, seen := observe(ctx, c, client.LockInfo{Recipe: "none"})
	_ = callers(ctx)
	seen.queued("/", nil)
	seen.given(ctx, h, nil)
	h.grant.seen.Load().released(nil)
}
