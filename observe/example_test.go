package observe_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// acquires is a sink for a program that wants to know one number: how many acquires have
// ended.
type acquires struct{ atomic.Int64 }

func (a *acquires) Histogram(m observe.Metric, _ ...string) func(context.Context, float64) {
	if m.Name != observe.AcquireDuration {
		return func(context.Context, float64) {}
	}
	return func(context.Context, float64) { a.Add(1) }
}

func (a *acquires) Sum(observe.Metric, ...string) func(context.Context, int64) {
	return func(context.Context, int64) {}
}

// A library of metrics that Docent has no module for needs a sink of two methods.
func ExampleNewMeasures() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	srv, err := zktest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	var ended acquires
	c, err := client.Connect(ctx, srv.Addr(),
		client.WithLogger(slog.New(slog.DiscardHandler)),
		client.WithObserver(observe.NewMeasures(&ended, observe.NoName).Observer()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }()
	m, err := recipes.NewInterProcessMutex(c, "/orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		if err := m.Do(ctx, func(context.Context, *recipes.Hold) error { return nil }); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(ended.Load(), "acquires")
	// Output: 3 acquires
}

// The label "lock" must have few values. The first element of a path often has.
func ExampleFirstElement() {
	fmt.Println(observe.FirstElement(client.LockInfo{Path: "/orders/4711"}))
	// Output: orders
}

// A program with a fixed set of locks names those.
func ExampleListed() {
	name := observe.Listed("/billing", "/reports")
	fmt.Println(name(client.LockInfo{Path: "/billing"}), name(client.LockInfo{Path: "/orders/4711"}))
	// Output: /billing other
}

// Both observers hear of everything, in this order.
func ExampleJoin() {
	says := func(name string) client.Observer {
		return client.Observer{StateChange: func(client.StateChange) { fmt.Println(name) }}
	}
	both := observe.Join(says("first"), says("second"))
	both.StateChange(client.StateChange{State: client.Connected})
	// Output:
	// first
	// second
}

func ExampleErrorType() {
	fmt.Println(observe.ErrorType(zk.ErrNoNode), observe.ErrorType(errors.New("disk full")))
	// Output: NONODE _OTHER
}

// A sink may prepare its instruments before there is a value.
func ExampleMetrics() {
	for _, m := range observe.Metrics() {
		if m.Name == observe.Holds {
			fmt.Println(m.PrometheusName(), m.PrometheusLabels())
		}
	}
	// Output: docent_lock_holds [recipe mode lock]
}
