package observe

import (
	"slices"
	"strings"
)

// Kind says how the values of a metric come together.
type Kind int

// The kinds of metrics.
const (
	Histogram Kind = iota // how often there was a value up to each of some bounds
	Counter               // a sum that only grows
	Gauge                 // a sum that grows and shrinks; in OpenTelemetry an up-down counter
	Asked                 // a value that is computed when it is asked for; in OpenTelemetry an observable gauge
)

// Metric describes a metric.
type Metric struct {
	Name    string // with dots, as in OpenTelemetry
	Kind    Kind
	Unit    string // as in OpenTelemetry: "s", "1" for a part of a whole, or a word in braces
	Help    string
	Labels  []string  // with dots; their values come in this order
	Buckets []float64 // upper bounds, of a histogram
}

// The names of the metrics.
const (
	OperationDuration = "db.client.operation.duration"
	Retries           = "docent.client.retries"
	SessionState      = "docent.session.state"
	Transitions       = "docent.session.transitions"
	LeaseRemaining    = "docent.session.lease.remaining.ratio"
	HeartbeatDuration = "docent.session.heartbeat.duration"
	HeartbeatFailures = "docent.session.heartbeat.failures"
	DialDuration      = "docent.dial.duration"
	AcquireDuration   = "docent.lock.acquire.duration"
	HoldDuration      = "docent.lock.hold.duration"
	Holds             = "docent.lock.holds"
	Waiters           = "docent.lock.waiters"
	QueuePosition     = "docent.lock.queue.position"
	Lost              = "docent.lock.lost"
	Pending           = "docent.background.pending"
	Removals          = "docent.background.removals"
	AtomicDuration    = "docent.atomic.operation.duration"
	AtomicTries       = "docent.atomic.operation.tries"
	Caches            = "docent.cache.caches"
	CacheNodes        = "docent.cache.nodes"
	CacheDelay        = "docent.cache.snapshot.delay"
	CacheResyncs      = "docent.cache.resyncs"
	CacheGaps         = "docent.cache.gaps"
	CacheLimits       = "docent.cache.limits"
	CacheAge          = "docent.cache.snapshot.age"
	SessionTimeout    = "docent.session.timeout"
	DisconnectedAge   = "docent.session.disconnected.age"
	WaitAge           = "docent.lock.wait.age"
	HoldAge           = "docent.lock.hold.age"
	Nodes             = "docent.node.nodes"
	NodeFailures      = "docent.node.failures"
	ServiceInstances  = "docent.service.instances"
)

// Metrics lists every metric of [Measures]. The caller may change the list.
func Metrics() []Metric {
	// A request takes from a tenth of a millisecond on; these are the bounds of
	// OpenTelemetry's conventions for databases.
	request := []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10}
	// A wait or a hold takes from a round trip to hours.
	work := []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 1800, 7200}
	lock := []string{"docent.lock.recipe", "docent.lock.mode", "docent.lock.name"}
	with := func(label string) []string { return append(slices.Clone(lock), label) }
	cache := []string{"docent.cache.recipe", "docent.cache.name"}
	// A snapshot takes from a round trip to the load of a large tree.
	load := []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 60}
	return []Metric{
		{OperationDuration, Histogram, "s", "Duration of the client's operations, with their retries.", []string{"db.system.name", "db.operation.name", "error.type"}, request},
		{Retries, Counter, "{retry}", "Tries of operations that failed and were repeated.", []string{"db.operation.name"}, nil},
		{SessionState, Gauge, "{client}", "Clients of this process in each state. A closed client is in none.", []string{"docent.session.state"}, nil},
		{Transitions, Counter, "{transition}", "Changes of clients to each state.", []string{"docent.session.state"}, nil},
		{SessionTimeout, Asked, "s", "Shortest timeout that the servers have granted to a session of this process, 0 without a session.", nil, nil},
		{DisconnectedAge, Asked, "s", "For how long the client that has lacked a connection for longest has lacked one, 0 if all are connected.", nil, nil},
		{LeaseRemaining, Histogram, "1", "Part of the lease that holds had left at the end of each heartbeat, 0 once they are lost.", nil, []float64{0, .05, .1, .2, .3, .4, .5, .6, .8, 1}},
		{HeartbeatDuration, Histogram, "s", "Duration of heartbeats. There are heartbeats only while something is held.", []string{"error.type"}, request},
		{HeartbeatFailures, Counter, "{failure}", "Heartbeats without a useful answer.", nil, nil},
		{DialDuration, Histogram, "s", "Duration of dials with their handshakes.", []string{"server.address", "error.type"}, request},
		{AcquireDuration, Histogram, "s", "Duration of acquires until the lock was held, or until they ended without it.", with("docent.lock.outcome"), work},
		{HoldDuration, Histogram, "s", "Duration of holds.", with("docent.lock.end"), work},
		{Holds, Gauge, "{hold}", "Holds of this process. A hold that re-enters another is part of that one.", lock, nil},
		{Waiters, Gauge, "{acquire}", "Acquires of this process that have not ended.", lock, nil},
		{WaitAge, Asked, "s", "For how long the oldest acquire of this process has waited, 0 if none waits.", lock, nil},
		{HoldAge, Asked, "s", "For how long the oldest hold of this process has lasted, 0 if there is none.", lock, nil},
		{QueuePosition, Histogram, "{waiter}", "How many waiters were ahead when an acquire got its first place in the queue.", lock, []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}},
		{Lost, Counter, "{hold}", "Holds that ended before their release.", with("docent.lock.end"), nil},
		{Pending, Gauge, "{node}", "Nodes that clients of this process have still to remove in the background.", nil, nil},
		{Removals, Counter, "{node}", "Removals in the background that have ended.", []string{"docent.removal.result"}, nil},
		{AtomicDuration, Histogram, "s", "Duration of operations on atomic values.", []string{"docent.atomic.recipe", "docent.atomic.operation", "docent.atomic.outcome"}, request},
		{AtomicTries, Histogram, "{try}", "Tries of operations on atomic values, without and under a lock.", []string{"docent.atomic.recipe", "docent.atomic.operation"}, []float64{1, 2, 3, 5, 10, 20, 50, 100}},
		{Caches, Gauge, "{cache}", "Caches of this process in each state. A cache that has ended is in none.", append(slices.Clone(cache), "docent.cache.state"), nil},
		{CacheNodes, Gauge, "{node}", "Nodes in the newest snapshots of caches.", cache, nil},
		{CacheDelay, Histogram, "s", "How long changes waited for the snapshot that shows them. Of a start or a resync: how long the reading took.", append(slices.Clone(cache), "docent.cache.cause"), load},
		{CacheResyncs, Counter, "{resync}", "How often caches have read everything again, after a reconnection or a fault.", cache, nil},
		{CacheGaps, Counter, "{gap}", "How often caches have found servers that had gone back, as after a restore.", cache, nil},
		{CacheLimits, Counter, "{time}", "How often caches have become stale as the nodes exceed a limit.", cache, nil},
		{CacheAge, Asked, "s", "For how long the cache that was synced longest ago has not been synced, 0 if all are.", cache, nil},
		{Nodes, Gauge, "{node}", "Registered nodes of this process in each state. One that has ended is in none.", []string{"docent.node.recipe", "docent.node.name", "docent.node.state"}, nil},
		{ServiceInstances, Gauge, "{instance}", "Instances in the newest snapshots of directories, by whether they may be called. Skipped are nodes that are no usable instance.", []string{"docent.service.name", "docent.service.state"}, nil},
		{NodeFailures, Counter, "{failure}", "News of registered nodes that a try has failed, by the error.", []string{"docent.node.recipe", "docent.node.name", "error.type"}, nil},
	}
}

// PrometheusName is the name of the metric in Prometheus: with underscores, with the
// unit if that is seconds, and with _total for a counter.
func (m Metric) PrometheusName() string {
	name := underscores(m.Name)
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Kind == Counter {
		name += "_total"
	}
	return name
}

// PrometheusLabels are the labels of the metric in Prometheus, in the order of Labels.
func (m Metric) PrometheusLabels() []string {
	labels := make([]string, 0, len(m.Labels))
	for _, l := range m.Labels {
		labels = append(labels, underscores(l))
	}
	return labels
}

func underscores(name string) string { return strings.ReplaceAll(name, ".", "_") }
