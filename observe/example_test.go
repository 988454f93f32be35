package observe_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/zktest"
)

// board is a library of metrics that counts.
type board struct {
	mu   sync.Mutex
	sums map[string]int64
}

func (b *board) add(name string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sums[name] += n
}

func (b *board) Histogram(m observe.Metric, values ...string) func(context.Context, float64) {
	return func(context.Context, float64) { b.add(fmt.Sprint(m.Name, values), 1) }
}

func (b *board) Sum(m observe.Metric, values ...string) func(context.Context, int64) {
	return func(_ context.Context, n int64) { b.add(fmt.Sprint(m.Name, values), n) }
}

// Ask is for values that are computed when they are asked for. This board shows none.
func (b *board) Ask(observe.Metric, func() float64, ...string) {}

// A library of metrics needs three methods. Here one lock is taken, and taken again within
// its own hold, which is no second hold.
func ExampleNewMeasures() {
	counts := &board{sums: map[string]int64{}}
	measures := observe.NewMeasures(counts, observe.FirstElement)
	if err := holdTwice(measures.Observer()); err != nil {
		fmt.Println(err)
	}
	for _, name := range slices.Sorted(maps.Keys(counts.sums)) {
		metric, _, _ := strings.Cut(name, "[")
		switch metric {
		case observe.AcquireDuration, observe.HoldDuration, observe.Holds, observe.Waiters:
			fmt.Println(name, counts.sums[name])
		}
	}
	// Output:
	// docent.lock.acquire.duration[InterProcessMutex exclusive orders acquired] 1
	// docent.lock.hold.duration[InterProcessMutex exclusive orders released] 1
	// docent.lock.holds[InterProcessMutex exclusive orders] 0
	// docent.lock.waiters[InterProcessMutex exclusive orders] 0
}

// holdTwice takes a lock, and takes it again within the first hold.
func holdTwice(observer client.Observer) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	srv, err := zktest.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	c, err := client.Connect(ctx, srv.Addr(), client.WithObserver(observer), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	lock, err := recipes.NewInterProcessMutex(c, "/orders/4711")
	if err != nil {
		return err
	}
	return lock.Do(ctx, func(ctx context.Context, _ *recipes.Hold) error {
		return lock.Do(ctx, func(context.Context, *recipes.Hold) error { return nil })
	})
}

// A client has one observer, which may be made of several.
func ExampleJoin() {
	counts := &board{sums: map[string]int64{}}
	steps := client.Observer{
		Lock: func(ctx context.Context, lock client.LockInfo) (context.Context, client.LockHooks) {
			return ctx, client.LockHooks{
				Acquired: func(r client.AcquireResult) { fmt.Println(lock.Path, r.Outcome) },
				Ended:    func(r client.HoldResult) { fmt.Println(lock.Path, r.End) },
			}
		},
	}
	if err := holdTwice(observe.Join(steps, observe.NewMeasures(counts, nil).Observer())); err != nil {
		fmt.Println(err)
	}
	fmt.Println("holds that ended:", counts.sums["docent.lock.hold.duration[InterProcessMutex exclusive  released]"])
	// Output:
	// /orders/4711 acquired
	// /orders/4711 released
	// holds that ended: 1
}

// The value of a label has to be one of few.
func ExampleLockName() {
	nightly := observe.Listed("/cron/nightly", "/cron/weekly")
	below := observe.Below("/locks", "/cron")
	for _, path := range []string{"/locks/orders/4711", "/cron/nightly"} {
		lock := client.LockInfo{Recipe: "InterProcessMutex", Path: path}
		fmt.Printf("%q %q %q %q\n", observe.NoName(lock), observe.FirstElement(lock), nightly(lock), below(lock))
	}
	// Output:
	// "" "locks" "other" "/locks/orders"
	// "" "cron" "/cron/nightly" "/cron/nightly"
}

func ExampleErrorType() {
	err := &client.OpError{Op: "get", Path: "/none", Outcome: client.OutcomeRefused, Err: client.ErrNoNode}
	fmt.Println(observe.ErrorType(err))
	// Output: NONODE
}

// The names in Prometheus follow from those of the metrics.
func ExampleMetrics() {
	for _, m := range observe.Metrics() {
		if m.Name == observe.Lost {
			fmt.Println(m.PrometheusName(), m.PrometheusLabels())
		}
	}
	// Output: docent_lock_lost_total [docent_lock_recipe docent_lock_mode docent_lock_name docent_lock_end]
}
