// Package app is the product, joined from its parts: the source of variants and workloads, the
// collector of metrics, the planner, and the scaler, which answers KEDA. It is the only place that
// joins them: the server and the demo differ in Options alone.
//
// Run works by the clock until its context ends. A caller in virtual time calls Serve instead, and
// then Step at each instant. All times are UTC.
//
// Limits: the package decides nothing, and a configuration must be valid (see package config).
package app
