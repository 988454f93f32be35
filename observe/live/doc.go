// Package live tests the adapters of observe, the dashboard and the alerts beside a
// Prometheus server and a receiver of OpenTelemetry's protocol. It has tests only. They
// need Debian's package prometheus; run them with make observe. The command panels makes
// the picture of the dashboard.
package live
