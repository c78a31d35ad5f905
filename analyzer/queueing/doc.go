// Package queueing works out what one replica of an LLM engine with continuous batching can carry.
//
// A Sizer answers which rate of requests a replica carries while a percentile of them meets its objectives: by formula, from
// the distributions of lengths and the burstiness of arrivals, and where the formula is known to be far off by a small
// simulation with fixed randomness.
//
// The queue (New) is a birth-death chain with rates μ(n) = n/S(n), S(n) = m·α + n·w (see Service). It knows the mean of the
// batch, not the interference that one request meets: it serves what-if and mean limits. SingleServer (M/M/1/K) and
// GeneralService (M/G/1) stand beside it for comparison.
//
// Units: seconds, requests per second, tokens; float64 throughout.
//
// Limits: pure mathematics of one replica in steady state. It knows no fleet, no metrics and no prices. docs/sizing.md has the
// derivations, and what they were checked against.
package queueing
