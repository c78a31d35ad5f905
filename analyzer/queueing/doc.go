// Package queueing computes the capacity of one replica of an LLM engine with continuous batching.
//
// A Sizer returns the highest rate of requests at which a percentile of them meets an objective. It
// uses a formula, from the distributions of lengths and the burstiness of arrivals, and a small
// simulation with a fixed seed if the formula is known to be far off.
//
// The queue of a Service is a birth-death chain with rates μ(n) = n/S(n), S(n) = m·α + n·w. It
// models the mean batch, not the interference that one request meets: it is for what-if questions
// and limits on means. Package textbook has such queues.
//
// Units: seconds, requests per second, tokens; float64 throughout.
//
// Limits: pure mathematics of one replica in steady state, without fleet, metrics and prices.
// docs/math/sizing.md has the derivations and the checks of them.
package queueing
