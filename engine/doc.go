// Package engine describes the inference engines and the gateways that WVA reads. Each is a row in
// a file of its own: the names of its metrics, their labels, and its command-line flags. The
// collector's PromQL, the reading of command lines and docs/reference/engines.md are written from
// these rows, so another engine is another file and another line in Engines.
//
// A metric is read under the name that the engine gives it and under the name that Prometheus may
// have stored instead (Escaped).
//
// Units are those of Quantities and Limits.
//
// Limits: a Prometheus that asks for the escaping schemes "dots" or "values" stores names that are
// not read, and "dots" changes the labels too. Neither is the default of any version.
package engine
