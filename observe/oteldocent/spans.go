package oteldocent

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
)

// Spans returns the hooks for one client that make spans with the provider, for example
// with otel.GetTracerProvider(). Each client needs its own observer: the observer knows the
// state that its client is in. Every span that it begins ends: that of a state at the
// latest when the client is closed.
//
// The spans are
//
//   - those of operations, named after the operation ("create"), with an event for each
//     retry; their kind is client,
//   - "lock acquire", with an event for each place in the queue, above the operations of
//     the acquire,
//   - "lock hold", linked to "lock acquire" and above what is done with the context of the
//     hold, with an event "lost" if the hold is lost,
//   - "atomic add" and the other operations on atomic values, above their requests,
//   - "session connecting" and "session suspended", from the change to that state until the
//     next change, and "session lost" and "session closed", which take no time; "dial", and
//     "remove in background", which begins when the removal is owed and is exported when
//     it has ended. These have no parent.
//
// The attributes contain paths, sessions and tokens. They contain no data of nodes.
func Spans(provider trace.TracerProvider) client.Observer {
	t := tracer{provider.Tracer(scope)}
	return client.Observer{
		Operation:   t.operation,
		Retry:       retried,
		StateChange: t.stateChanges(),
		Dial:        t.dial,
		Removal:     t.removal,
		Lock:        t.lock,
		Atomic:      t.atomic,
	}
}

type tracer struct{ trace.Tracer }

func (t tracer) operation(ctx context.Context, op client.OperationInfo) (context.Context, func(client.OperationResult)) {
	ctx, span := t.Start(ctx, op.Op, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.system.name", "zookeeper"),
		attribute.String("db.operation.name", op.Op),
		attribute.String("docent.path", op.Path),
	))
	return ctx, func(r client.OperationResult) {
		if span.IsRecording() {
			span.SetAttributes(
				attribute.String("docent.outcome", r.Outcome.String()),
				attribute.Int("docent.tries", r.Attempts),
				attribute.Int64("docent.bytes.sent", r.Sent),
				attribute.Int64("docent.bytes.received", r.Received),
				session(r.Session),
			)
		}
		end(span, r.Err)
	}
}

func retried(ctx context.Context, again client.RetryInfo) {
	trace.SpanFromContext(ctx).AddEvent("retry", trace.WithAttributes(
		attribute.Int("docent.try", again.Attempt.N),
		attribute.Float64("docent.pause", again.Attempt.Pause.Seconds()),
		attribute.String("error.type", observe.ErrorType(again.Attempt.Err)),
		attribute.String("error.message", fmt.Sprint(again.Attempt.Err)),
	))
}

// stateChanges returns the hook for the changes of one client. They come in order, on one
// goroutine.
func (t tracer) stateChanges() func(client.StateChange) {
	var open trace.Span
	return func(now client.StateChange) {
		if open != nil {
			open.SetAttributes(attribute.String("docent.session.next", now.State.String()))
			open.End(trace.WithTimestamp(now.At))
			open = nil
		}
		if now.State == client.Connected { // lasts, and would be exported only at its end
			return
		}
		_, span := t.Start(unspanned(), "session "+now.State.String(), trace.WithTimestamp(now.At), trace.WithAttributes(session(now.Session)))
		fail(span, now.Err)
		if now.State == client.Connecting || now.State == client.Suspended {
			open = span
			return
		}
		span.End(trace.WithTimestamp(now.At))
	}
}

func (t tracer) dial(d client.DialInfo) {
	_, span := t.Start(unspanned(), "dial", trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(d.Begun), trace.WithAttributes(
		attribute.String("db.system.name", "zookeeper"),
		attribute.String("server.address", d.Server),
		attribute.Float64("docent.dial.transport", d.Transport.Seconds()),
		attribute.Float64("docent.dial.tls", d.TLS.Seconds()),
		attribute.Float64("docent.dial.handshake", d.Handshake.Seconds()),
		attribute.Bool("docent.session.restored", d.Restored),
		session(d.Session),
	))
	fail(span, d.Err)
	span.End(trace.WithTimestamp(d.Begun.Add(d.Duration)))
}

func (t tracer) removal(r client.RemovalInfo) {
	if r.State == client.RemovalOwed || r.State == client.RemovalFailed {
		return
	}
	_, span := t.Start(unspanned(), "remove in background", trace.WithTimestamp(r.Begun), trace.WithAttributes(
		attribute.String("docent.path", r.Path),
		attribute.String("docent.removal.result", r.State.String()),
		attribute.Int("docent.tries", r.Tries),
	))
	end(span, r.Err)
}

func (t tracer) lock(ctx context.Context, lock client.LockInfo) (context.Context, client.LockHooks) {
	attributes := trace.WithAttributes(
		attribute.String("docent.lock.recipe", lock.Recipe),
		attribute.String("docent.lock.mode", lock.Mode),
		attribute.String("docent.lock.path", lock.Path),
		attribute.Int("docent.lock.permits", lock.Permits),
		attribute.Bool("docent.lock.try", lock.Try),
	)
	ctx, acquire := t.Start(ctx, "lock acquire", attributes)
	var hold trace.Span
	return ctx, client.LockHooks{
		Queued: func(p client.QueuePlace) {
			acquire.AddEvent("queued", trace.WithAttributes(
				attribute.Int("docent.lock.ahead", p.Ahead),
				attribute.String("docent.lock.node", p.Node),
				attribute.String("docent.lock.behind", p.Behind),
			))
		},
		Acquired: func(r client.AcquireResult) {
			acquire.SetAttributes(attribute.String("docent.lock.outcome", r.Outcome.String()))
			if r.Outcome == client.AcquireDone {
				acquire.SetAttributes(held(r.HoldInfo)...)
			}
			if r.Outcome == client.AcquireBusy { // an answer, and no error
				r.Err = nil
			}
			end(acquire, r.Err)
		},
		Held: func(ctx context.Context, h client.HoldInfo) context.Context {
			ctx, hold = t.Start(ctx, "lock hold", attributes, trace.WithAttributes(held(h)...),
				trace.WithLinks(trace.Link{SpanContext: acquire.SpanContext()}))
			return ctx
		},
		Ended: func(r client.HoldResult) {
			hold.SetAttributes(attribute.String("docent.lock.end", r.End.String()))
			if r.End.Lost() {
				hold.AddEvent("lost", trace.WithAttributes(attribute.String("docent.lock.end", r.End.String())))
			}
			end(hold, r.Err)
		},
	}
}

func (t tracer) atomic(ctx context.Context, op client.AtomicInfo) (context.Context, func(client.AtomicResult)) {
	ctx, span := t.Start(ctx, "atomic "+op.Op, trace.WithAttributes(
		attribute.String("docent.atomic.recipe", op.Recipe),
		attribute.String("docent.path", op.Path),
	))
	return ctx, func(r client.AtomicResult) {
		span.SetAttributes(
			attribute.Bool("docent.atomic.succeeded", r.Succeeded),
			attribute.Int("docent.atomic.merged", r.Merged),
			attribute.Int("docent.atomic.tries.optimistic", r.OptimisticTries),
			attribute.Int("docent.atomic.tries.promoted", r.PromotedTries),
		)
		end(span, r.Err)
	}
}

// held are the attributes of a hold.
func held(h client.HoldInfo) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("docent.lock.node", h.Node),
		attribute.Int64("docent.lock.token", h.FencingToken),
		session(h.Session),
	}
}

// session is the id of a session, as the logs of servers show it.
func session(id int64) attribute.KeyValue {
	return attribute.String("docent.session.id", fmt.Sprintf("0x%x", uint64(id))) //nolint:gosec // the bits of the id
}

// end ends the span of what failed with err, or did not.
func end(span trace.Span, err error) {
	fail(span, err)
	span.End()
}

// fail notes an error, if there is one.
func fail(span trace.Span, err error) {
	if err == nil {
		return
	}
	span.SetAttributes(attribute.String("error.type", observe.ErrorType(err)))
	span.SetStatus(codes.Error, err.Error())
}
