// Package demo runs the whole product on a simulated fleet: the real collector, planner and gRPC
// server in one process, an in-process Prometheus that scrapes simulated engines, and a stand-in
// for KEDA and the HPA that calls the server over gRPC and scales the fleet.
//
// A run ends with a summary that compares it with two baselines on the same requests, and on demand
// with a report as one HTML page. A run that is interrupted has both for its part.
//
// Units: virtual time is counted in whole seconds since the demo began. The product gets times of
// day that begin at 9:00 UTC.
//
// Limits: virtual time stands still during a scrape, a cycle or a call, and a throttle only delays
// it. One seed therefore gives one summary, byte for byte, on every machine. There is no
// Kubernetes: workloads and pods are those of the simulation.
package demo
