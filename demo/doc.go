// Package demo is the whole product wired to a simulated fleet: the real collector, planner and gRPC server in one process,
// an in-process Prometheus that scrapes simulated engines, and a stand-in for KEDA and the HPA that calls the server over
// gRPC and scales the fleet.
//
// Units: virtual time is counted in whole seconds since the demo began; what the product sees of it are times after Epoch.
//
// Limits: virtual time stands still while a scrape, a cycle or a call is under way, and a throttle only delays it; one seed
// therefore gives one summary, byte for byte, on every machine. No Kubernetes is behind it: workloads and pods are those of
// the simulation.
package demo
