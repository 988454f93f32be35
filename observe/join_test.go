package observe_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
)

type spanKey struct{}

// storyteller tells all hooks to a list, with the observers that were before it.
func storyteller(none context.Context, name string, told *[]string) client.Observer {
	tell := func(ctx context.Context, what string) context.Context {
		before, _ := ctx.Value(spanKey{}).(string)
		*told = append(*told, before+name+" "+what)
		return context.WithValue(ctx, spanKey{}, before+name)
	}
	return client.Observer{
		Operation: func(ctx context.Context, _ client.OperationInfo) (context.Context, func(client.OperationResult)) {
			return tell(ctx, "operation"), func(client.OperationResult) { tell(none, "end") }
		},
		Retry:       func(ctx context.Context, _ client.RetryInfo) { tell(ctx, "retry") },
		StateChange: func(client.StateChange) { tell(none, "state") },
		Heartbeat:   func(client.HeartbeatInfo) { tell(none, "heartbeat") },
		Dial:        func(client.DialInfo) { tell(none, "dial") },
		Removal:     func(client.RemovalInfo) { tell(none, "removal") },
		Lock: func(ctx context.Context, _ client.LockInfo) (context.Context, client.LockHooks) {
			return tell(ctx, "lock"), client.LockHooks{
				Queued:   func(client.QueuePlace) { tell(none, "queued") },
				Acquired: func(client.AcquireResult) { tell(none, "acquired") },
				Held:     func(ctx context.Context, _ client.HoldInfo) context.Context { return tell(ctx, "held") },
				Ended:    func(client.HoldResult) { tell(none, "ended") },
			}
		},
		Atomic: func(ctx context.Context, _ client.AtomicInfo) (context.Context, func(client.AtomicResult)) {
			return tell(ctx, "atomic"), func(client.AtomicResult) { tell(none, "end") }
		},
		Cache: func(client.CacheInfo) func(client.CacheUpdate) {
			tell(none, "cache")
			return func(client.CacheUpdate) { tell(none, "news") }
		},
		Service: func(client.ServiceInfo) func(client.ServiceUpdate) {
			tell(none, "service")
			return func(client.ServiceUpdate) { tell(none, "counts") }
		},
	}
}

// Every observer is told everything, and sees what the one before it put into the context.
func TestJoin(t *testing.T) {
	t.Parallel()
	var told []string
	silent := client.Observer{ // hooks that return nothing
		Operation: func(context.Context, client.OperationInfo) (context.Context, func(client.OperationResult)) {
			return nil, nil
		},
		Lock: func(context.Context, client.LockInfo) (context.Context, client.LockHooks) {
			return nil, client.LockHooks{}
		},
		Atomic: func(context.Context, client.AtomicInfo) (context.Context, func(client.AtomicResult)) { return nil, nil },
		Cache:  func(client.CacheInfo) func(client.CacheUpdate) { return nil },

		Service: func(client.ServiceInfo) func(client.ServiceUpdate) { return nil },
	}
	o := observe.Join(storyteller(t.Context(), "a", &told), silent, client.Observer{}, storyteller(t.Context(), "b", &told))
	ctx := t.Context()
	within, end := o.Operation(ctx, client.OperationInfo{})
	o.Retry(within, client.RetryInfo{})
	end(client.OperationResult{})
	o.StateChange(client.StateChange{})
	o.Heartbeat(client.HeartbeatInfo{})
	o.Dial(client.DialInfo{})
	o.Removal(client.RemovalInfo{})
	_, hooks := o.Lock(ctx, client.LockInfo{})
	hooks.Queued(client.QueuePlace{})
	hooks.Acquired(client.AcquireResult{})
	held := hooks.Held(ctx, client.HoldInfo{})
	hooks.Ended(client.HoldResult{})
	_, done := o.Atomic(ctx, client.AtomicInfo{})
	done(client.AtomicResult{})
	o.Cache(client.CacheInfo{})(client.CacheUpdate{})
	o.Service(client.ServiceInfo{})(client.ServiceUpdate{})
	want := []string{
		"a operation", "ab operation", "aba retry", "abb retry", "b end", "a end",
		"a state", "b state", "a heartbeat", "b heartbeat", "a dial", "b dial", "a removal", "b removal",
		"a lock", "ab lock", "a queued", "b queued", "a acquired", "b acquired", "a held", "ab held", "a ended", "b ended",
		"a atomic", "ab atomic", "b end", "a end",
		"a cache", "b cache", "a news", "b news",
		"a service", "b service", "a counts", "b counts",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told\n%q, want\n%q", told, want)
	}
	if got := held.Value(spanKey{}); got != "ab" {
		t.Errorf("the hold is below %v", got)
	}
}

// No observers cost nothing, and an observer alone is not wrapped.
func TestJoinOfNone(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprintf("%+v", observe.Join(client.Observer{}, client.Observer{})); got != fmt.Sprintf("%+v", client.Observer{}) {
		t.Errorf("Join of nothing is %s", got)
	}
	var told []string
	o := observe.Join(client.Observer{}, storyteller(t.Context(), "a", &told))
	_, end := o.Operation(t.Context(), client.OperationInfo{})
	end(client.OperationResult{})
	if !slices.Equal(told, []string{"a operation", "a end"}) {
		t.Errorf("told %q", told)
	}
}
