// Package collector reads Prometheus and fills the tables of a snapshot that say what engines report (fleet.Usage) and
// what is asked of models (fleet.Load). PromQL lives here and nowhere else.
//
// Units: rates are per second, latencies in seconds, lengths in tokens.
//
// A histogram of lengths has the bounds that all engines of a model share. The index of dispersion is that of scrape intervals: what
// moves slower than that is a change of the rate and no burst.
//
// Limits: a cycle asks at most a dozen queries, whatever the size of the fleet, all at one instant that every replica of
// the scaler computes alike. The collector keeps no history: windows are Prometheus'. Engines and gateways are rows of a
// table (dialects.go); a metric under another name is a new row.
package collector
