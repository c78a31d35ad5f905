// Package queueing works out what one replica of an LLM engine with continuous batching can carry: the steady state of a queue
// whose service slows down with its batch, and the highest rate of requests at which a percentile of them meets its
// objectives.
//
// Units: seconds, requests per second, tokens; float64 throughout.
//
// Limits: pure mathematics of one replica in steady state. It knows no fleet, no metrics and no prices.
package queueing
