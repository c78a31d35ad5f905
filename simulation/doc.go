// Package simulation is a fleet of inference engines in virtual time: engines that batch iteration by iteration, replicas
// that take a while to load and to drain, a gateway that routes and queues, load from a seeded generator or a trace, and
// rival autoscalers to compare with.
//
// Engines follow vLLM's scheduler: first come, first served; continuous batching with chunked prefill; KV cache in
// blocks, with preemption where it runs out. Their iteration times come from published fits to kernel measurements, with
// noise; none of the analyzer's formulas is used here. What a scrape of the fleet would see carries vLLM's and the
// gateway's real names.
//
// Units: virtual time is float64 seconds since the simulation began, lengths are tokens, prices are per replica-hour.
//
// Everything is a function of its inputs and a seed, the same bits on every machine: no map is ranged over where order
// matters, and products that enter a sum are rounded first, so that no compiler fuses the two. Advancing in many small
// steps or in one gives the same run.
//
// Where the fleet has nodes, a replica holds accelerators of one of them from its start-up to the end of its drain.
//
// Limits: one engine per replica; a replica is one pod on one node; no network between gateway and engine; no failures of
// replicas; prefixes are a share of every prompt, not a cache. A value of this package is not for concurrent use.
package simulation
