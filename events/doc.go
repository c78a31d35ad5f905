// Package events writes the changes of plans as Kubernetes events on the variants' ScaledObjects,
// and elects the one of several replicas that writes them, by a lease. It is the only package that
// writes to a cluster. No decision waits for it.
//
// Units: durations are time.Duration, times are UTC.
//
// Limits: events beyond 5 a second (20 at once) or a queue of 1,000 are dropped and counted.
package events
