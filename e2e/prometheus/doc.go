// Package prometheus drives the server as it is shipped against a real Prometheus, which scrapes
// simulated engines over HTTP in wall time and is behind TLS and a bearer token. It is a module of
// its own, like all of e2e.
//
// The tests build cmd/wva and start Prometheus' binary: the one that PROMETHEUS names, or else the
// first on the PATH. Without one they are skipped. Everything listens on the loopback, and windows
// are seconds instead of minutes, so that all tests together take about a minute.
package prometheus
