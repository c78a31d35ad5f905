// Package textbook has the steady state of queues whose times of service do not depend on single
// requests: a birth-death chain with any rates (New), one server with exponential times
// (SingleServer, M/M/1/K), and one with times of any distribution (GeneralService, M/G/1). Sizing
// compares its answers with theirs.
//
// Units: seconds and requests per second; float64 throughout. Sums over the queue are in closed
// form, so that queues of any length take the same time. docs/math/sizing.md has the derivations.
package textbook
