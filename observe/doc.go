// Package observe turns what a [client.Observer] is told into metrics, for any library
// of metrics.
//
// [NewMeasures] makes the observer of a [Sink]. The modules observe/promdocent and
// observe/oteldocent are sinks for Prometheus and for OpenTelemetry. Both export what
// [Metrics] lists, with the same names, labels and buckets. So the dashboard and the
// alerts of this directory fit both. docs/observability.md says what each of them is
// good for.
//
// A client has one observer. [Join] makes one of several, for example of metrics and
// of traces.
package observe
