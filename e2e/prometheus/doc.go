// Package prometheus drives the server as it is shipped against a real Prometheus, which scrapes simulated engines over HTTP
// in wall time and stands behind TLS and a bearer token. It is a module of its own, as all of e2e is.
//
// The tests build cmd/wva and start Prometheus' binary: the one that PROMETHEUS names, or else the first on the PATH. Where
// there is none they are skipped. Everything listens on the loopback, and windows are seconds instead of minutes, so that the
// whole takes about a minute.
package prometheus
