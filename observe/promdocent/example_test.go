package promdocent_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/docent-go/docent/client"
	"github.com/docent-go/docent/observe"
	"github.com/docent-go/docent/observe/promdocent"
	"github.com/docent-go/docent/zktest"
)

// A collector is registered once, and gives each client its observer.
func ExampleNew() {
	metrics := promdocent.New(promdocent.WithLockName(observe.FirstElement))
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	srv, err := zktest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	c, err := client.Connect(context.Background(), srv.Addr(), client.WithObserver(metrics.Observer()),
		client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := c.Close(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(testutil.GatherAndCount(registry, "docent_session_state", "docent_dial_duration_seconds"))
	// Output: 5 <nil>
}
