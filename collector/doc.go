// Package collector reads Prometheus and fills two tables of a snapshot: the reports of engines
// (fleet.Usage) and the demand of models (fleet.Load). PromQL is written here and nowhere else. New
// returns a Collector; Collect answers a cycle, Queues polls the gateways between cycles.
//
// Units: rates are per second, latencies in seconds, lengths in tokens.
//
// A histogram of lengths has the bounds that all engines of a model share. The index of dispersion
// is that of scrape intervals: a slower variation is a change of the rate and no burst.
//
// Limits: a cycle sends at most fourteen queries, whatever the size of the fleet, all for one
// instant that every replica of the scaler computes alike. The collector keeps no history: windows
// are those of Prometheus. Engines and gateways are rows of package engine, and dialects.go turns
// them into names; another engine is another row there.
package collector
