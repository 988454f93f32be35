package oteldocent_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe/internal/scenes"
	"github.com/docent-go/docent/observe/oteldocent"
	"github.com/docent-go/docent/zktest"
)

// record plays all scenes with spans, and returns those that ended, and how many began.
func record(t *testing.T) (ended []trace.ReadOnlySpan, begun []trace.ReadWriteSpan) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.NewServer(t, zktest.WithTick(100*time.Millisecond), zktest.WithLatency(50*time.Microsecond, time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ctx, request := provider.Tracer("test").Start(ctx, "request")
		_, err := scenes.Play(ctx, srv, func() client.Observer { return oteldocent.Spans(provider) })
		if err != nil {
			t.Fatal(err)
		}
		request.End()
		synctest.Wait()
	})
	return spans.Ended(), spans.Started()
}

func value(s trace.ReadOnlySpan, key string) string {
	for _, a := range s.Attributes() {
		if a.Key == attribute.Key(key) {
			return a.Value.Emit()
		}
	}
	return ""
}

// Every span that began has ended, whatever became of the acquire, and ended once.
func TestSpansEnd(t *testing.T) {
	t.Parallel()
	ended, begun := record(t)
	open := map[string]int{}
	for _, s := range begun {
		open[s.Name()]++
	}
	for _, s := range ended {
		open[s.Name()]--
		if s.EndTime().Before(s.StartTime()) {
			t.Errorf("%q ended before it began", s.Name())
		}
	}
	for name, n := range open {
		if n != 0 {
			t.Errorf("%d spans %q began and did not end", n, name)
		}
	}
	for _, want := range []string{
		"lock acquire", "lock hold", "create", "delete", "dial", "atomic add", "atomic compare and set", "remove in background",
		"session connecting", "session suspended", "session lost", "session closed",
	} {
		if _, ok := open[want]; !ok {
			t.Errorf("there is no span %q", want)
		}
	}
}

// Acquires and holds say what came of them, and stand where a reader of the trace looks
// for them.
func TestSpansOfLocks(t *testing.T) {
	t.Parallel()
	ended, _ := record(t)
	byID := map[string]trace.ReadOnlySpan{}
	for _, s := range ended {
		byID[s.SpanContext().SpanID().String()] = s
	}
	parent := func(s trace.ReadOnlySpan) string {
		if p, ok := byID[s.Parent().SpanID().String()]; ok {
			return p.Name()
		}
		return ""
	}
	acquires, holds := map[string]int{}, map[string]int{}
	queued := 0
	for _, s := range ended {
		failed := s.Status().Code == codes.Error
		switch s.Name() {
		case "lock acquire":
			outcome := value(s, "docent.lock.outcome")
			acquires[outcome]++
			if parent(s) != "request" {
				t.Errorf("an acquire is below %q", parent(s))
			}
			if failed != (outcome == "timeout" || outcome == "canceled" || outcome == "error") {
				t.Errorf("an acquire with the outcome %s: status %v", outcome, s.Status())
			}
			if (value(s, "docent.lock.token") != "") != (outcome == "acquired") {
				t.Errorf("an acquire with the outcome %s has the token %q", outcome, value(s, "docent.lock.token"))
			}
			queued += len(s.Events())
		case "lock hold":
			end := value(s, "docent.lock.end")
			holds[end]++
			if parent(s) != "request" {
				t.Errorf("a hold is below %q", parent(s))
			}
			if len(s.Links()) != 1 || byID[s.Links()[0].SpanContext.SpanID().String()].Name() != "lock acquire" {
				t.Errorf("a hold has the links %v", s.Links())
			}
			lost := slices.ContainsFunc(s.Events(), func(e trace.Event) bool { return e.Name == "lost" })
			if lost != (end != "released") || lost && !failed {
				t.Errorf("a hold that ended %s: lost is %v, status %v", end, lost, s.Status())
			}
		}
	}
	if want := (map[string]int{"acquired": 11, "busy": 1, "timeout": 1, "canceled": 1}); fmt.Sprint(acquires) != fmt.Sprint(want) {
		t.Errorf("acquires: %v, want %v", acquires, want)
	}
	if want := (map[string]int{"released": 7, "deleted": 1, "session": 1, "lease": 1, "closed": 1}); fmt.Sprint(holds) != fmt.Sprint(want) {
		t.Errorf("holds: %v, want %v", holds, want)
	}
	if queued < 11 {
		t.Errorf("%d places in queues", queued)
	}
}

// An operation of an acquire is below the acquire, its retries are events, and its
// error has a type.
func TestSpansOfOperations(t *testing.T) {
	t.Parallel()
	ended, _ := record(t)
	parents := map[string]string{}
	for _, s := range ended {
		parents[s.SpanContext().SpanID().String()] = s.Name()
	}
	within, retries, missing := 0, 0, 0
	for _, s := range ended {
		if value(s, "db.operation.name") == "" {
			continue
		}
		if value(s, "db.system.name") != "zookeeper" || value(s, "docent.outcome") == "" || value(s, "db.operation.name") != s.Name() {
			t.Errorf("operation %q: %v", s.Name(), s.Attributes())
		}
		if parents[s.Parent().SpanID().String()] == "lock acquire" {
			within++
		}
		for _, e := range s.Events() {
			if e.Name == "retry" {
				retries++
			}
		}
		if s.Name() == "set" && value(s, "error.type") == "NONODE" && s.Status().Code == codes.Error {
			missing++
		}
	}
	if within < 11 || retries < 2 || missing != 3 {
		t.Errorf("%d operations within acquires, %d retries, %d sets of no node", within, retries, missing)
	}
}

// A span of a state lasts until the next state, on the client's clock.
func TestSpansOfStates(t *testing.T) {
	t.Parallel()
	ended, _ := record(t)
	var suspended time.Duration
	for _, s := range ended {
		if s.Name() == "session suspended" {
			suspended = max(suspended, s.EndTime().Sub(s.StartTime()))
			if value(s, "docent.session.next") == "" || value(s, "docent.session.id") == "0x0" {
				t.Errorf("suspended: %v", s.Attributes())
			}
		}
		if s.Name() == "session lost" && s.Status().Code != codes.Error {
			t.Errorf("a session that was lost has the status %v", s.Status())
		}
	}
	if suspended < 100*time.Millisecond || suspended > scenes.SessionTimeout {
		t.Errorf("the longest suspension took %v", suspended)
	}
}
