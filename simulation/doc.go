// Package simulation is a fleet of inference engines in virtual time. Engines batch iteration by
// iteration, replicas need time to load and to drain, a gateway routes and queues, load comes from
// a seeded generator or from a trace, and baseline autoscalers run on the same requests for
// comparison.
//
// Engines follow vLLM's scheduler: first come, first served; continuous batching with chunked
// prefill; a KV cache in blocks, with preemption if no block is free. Their iteration times come
// from published fits to kernel measurements, with noise; none of the analyzer's formulas is used
// here. The series of a scrape have the real names of vLLM and of the gateway.
//
// Units: virtual time is float64 seconds since the simulation began, lengths are tokens, prices are
// per replica-hour.
//
// Everything is a function of its inputs and a seed, with the same bits on every machine: no map is
// ranged over if order matters, and products that enter a sum are rounded first, so that no
// compiler fuses the two. Advancing in many small steps or in one gives the same run.
//
// If the fleet has nodes, each replica is scheduled to one of them. Its accelerators are allocated
// from its start-up to the end of its drain.
//
// Limits: one engine per replica; a replica is one pod on one node; no network between gateway and
// engine; no failures of replicas; prefixes are a share of every prompt, not a cache. A value of
// this package is not for concurrent use.
package simulation
