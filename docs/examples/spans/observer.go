package main

import (
	"context"
	"fmt"

	"github.com/docent-go/docent/client"
)

// observer makes spans of operations, acquires and holds. What is a span's name has
// few values, and is fit for a label; the rest is detail.
func observer() client.Observer {
	return client.Observer{
		Operation: func(ctx context.Context, op client.OperationInfo) (context.Context, func(client.OperationResult)) {
			ctx, s := start(ctx, op.Op)
			return ctx, func(r client.OperationResult) {
				s.end(fmt.Sprintf("%v, tries=%d, sent=%d, received=%d", r.Outcome, r.Attempts, r.Sent, r.Received))
			}
		},
		Retry: func(ctx context.Context, again client.RetryInfo) {
			of(ctx).event(fmt.Sprintf("try %d failed, the next in %v: %v", again.Attempt.N, again.Attempt.Pause, again.Attempt.Err))
		},
		Lock: func(ctx context.Context, lock client.LockInfo) (context.Context, client.LockHooks) {
			ctx, acquire := start(ctx, "lock acquire")
			var hold *span
			return ctx, client.LockHooks{
				Queued: func(p client.QueuePlace) { acquire.event(fmt.Sprintf("queued, %d ahead", p.Ahead)) },
				Acquired: func(r client.AcquireResult) {
					acquire.end(fmt.Sprintf("%v, %s %s %s", r.Outcome, lock.Recipe, lock.Mode, lock.Path))
				},
				Held: func(ctx context.Context, h client.HoldInfo) context.Context {
					ctx, hold = start(ctx, "lock hold")
					hold.event(fmt.Sprintf("token %d in session 0x%x", h.FencingToken, h.Session))
					return ctx
				},
				Ended: func(r client.HoldResult) { hold.end(r.End.String()) },
			}
		},
	}
}
