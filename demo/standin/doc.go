// Package standin has the parts of a cluster that act around a simulated fleet: Prometheus, which
// scrapes it, and the autoscalers of ScaledObjects, KEDA with its HPA.
//
// Units: virtual time is counted in whole seconds since the simulation began.
package standin
