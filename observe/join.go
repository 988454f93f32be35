package observe

import (
	"context"
	"slices"

	"github.com/docent-go/docent/client"
)

// Join returns an observer that tells each of the given observers, in their order. An
// observer gets the context that the observer before it returned. So the spans of an
// observer are known to the metrics of a later one. The ends of operations are told in the
// opposite order, because the first observer has begun first. A hook that no observer
// has stays nil and costs nothing.
func Join(observers ...client.Observer) client.Observer {
	return client.Observer{
		Operation:   joinStarts(observers, func(o client.Observer) start[client.OperationInfo, client.OperationResult] { return o.Operation }),
		Atomic:      joinStarts(observers, func(o client.Observer) start[client.AtomicInfo, client.AtomicResult] { return o.Atomic }),
		Retry:       joinRetries(observers),
		StateChange: joinNews(observers, func(o client.Observer) func(client.StateChange) { return o.StateChange }),
		Heartbeat:   joinNews(observers, func(o client.Observer) func(client.HeartbeatInfo) { return o.Heartbeat }),
		Dial:        joinNews(observers, func(o client.Observer) func(client.DialInfo) { return o.Dial }),
		Removal:     joinNews(observers, func(o client.Observer) func(client.RemovalInfo) { return o.Removal }),
		Lock:        joinLocks(observers),
		Cache:       joinFollowers(observers, func(o client.Observer) follow[client.CacheInfo, client.CacheUpdate] { return o.Cache }),
		Service:     joinFollowers(observers, func(o client.Observer) follow[client.ServiceInfo, client.ServiceUpdate] { return o.Service }),
		Node:        joinFollowers(observers, func(o client.Observer) follow[client.NodeInfo, client.NodeUpdate] { return o.Node }),
	}
}

// start is a hook for a beginning that returns the hook for the end.
type start[I, R any] = func(context.Context, I) (context.Context, func(R))

func joinStarts[I, R any](observers []client.Observer, field func(client.Observer) start[I, R]) start[I, R] {
	var hooks []start[I, R]
	for _, o := range observers {
		if hook := field(o); hook != nil {
			hooks = append(hooks, hook)
		}
	}
	if len(hooks) < 2 {
		return first(hooks)
	}
	return func(ctx context.Context, info I) (context.Context, func(R)) {
		ends := make([]func(R), 0, len(hooks))
		for _, hook := range hooks {
			within, end := hook(ctx, info)
			if within != nil {
				ctx = within //nolint:fatcontext // once for each observer
			}
			if end != nil {
				ends = append(ends, end)
			}
		}
		slices.Reverse(ends)
		return ctx, joined(ends)
	}
}

func joinNews[T any](observers []client.Observer, field func(client.Observer) func(T)) func(T) {
	var hooks []func(T)
	for _, o := range observers {
		if hook := field(o); hook != nil {
			hooks = append(hooks, hook)
		}
	}
	return joined(hooks)
}

// joined calls all of the hooks.
func joined[T any](hooks []func(T)) func(T) {
	if len(hooks) < 2 {
		return first(hooks)
	}
	return func(v T) {
		for _, hook := range hooks {
			hook(v)
		}
	}
}

func first[F any](hooks []F) F {
	var none F
	if len(hooks) == 0 {
		return none
	}
	return hooks[0]
}

func joinRetries(observers []client.Observer) func(context.Context, client.RetryInfo) {
	var hooks []func(context.Context, client.RetryInfo)
	for _, o := range observers {
		if o.Retry != nil {
			hooks = append(hooks, o.Retry)
		}
	}
	if len(hooks) < 2 {
		return first(hooks)
	}
	return func(ctx context.Context, again client.RetryInfo) {
		for _, hook := range hooks {
			hook(ctx, again)
		}
	}
}

type lockHook = func(context.Context, client.LockInfo) (context.Context, client.LockHooks)

func joinLocks(observers []client.Observer) lockHook {
	var hooks []lockHook
	for _, o := range observers {
		if o.Lock != nil {
			hooks = append(hooks, o.Lock)
		}
	}
	if len(hooks) < 2 {
		return first(hooks)
	}
	return func(ctx context.Context, info client.LockInfo) (context.Context, client.LockHooks) {
		all := make([]client.LockHooks, 0, len(hooks))
		for _, hook := range hooks {
			within, h := hook(ctx, info)
			if within != nil {
				ctx = within //nolint:fatcontext // once for each observer
			}
			all = append(all, h)
		}
		return ctx, joinHooks(all)
	}
}

// joinHooks tells all of the hooks of one acquire.
func joinHooks(all []client.LockHooks) client.LockHooks {
	return client.LockHooks{
		Queued: func(p client.QueuePlace) {
			for _, h := range all {
				if h.Queued != nil {
					h.Queued(p)
				}
			}
		},
		Acquired: func(r client.AcquireResult) {
			for _, h := range all {
				if h.Acquired != nil {
					h.Acquired(r)
				}
			}
		},
		Held: func(ctx context.Context, hold client.HoldInfo) context.Context {
			for _, h := range all {
				if h.Held == nil {
					continue
				}
				if within := h.Held(ctx, hold); within != nil {
					ctx = within //nolint:fatcontext // once for each observer
				}
			}
			return ctx
		},
		Ended: func(r client.HoldResult) {
			for _, h := range all {
				if h.Ended != nil {
					h.Ended(r)
				}
			}
		},
	}
}

// follow is a hook for a beginning that returns the hook for all news.
type follow[I, U any] = func(I) func(U)

func joinFollowers[I, U any](observers []client.Observer, field func(client.Observer) follow[I, U]) follow[I, U] {
	var hooks []follow[I, U]
	for _, o := range observers {
		if hook := field(o); hook != nil {
			hooks = append(hooks, hook)
		}
	}
	if len(hooks) < 2 {
		return first(hooks)
	}
	return func(info I) func(U) {
		var tell []func(U)
		for _, hook := range hooks {
			if t := hook(info); t != nil {
				tell = append(tell, t)
			}
		}
		return joined(tell)
	}
}
