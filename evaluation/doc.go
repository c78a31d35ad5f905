// Package evaluation compares policies that choose numbers of replicas: WVA, which runs as in
// production, and baselines from their published rules. Every policy gets the same requests, the
// same simulated fleet and the same seeds. The main knob of a policy is swept, and costs are
// compared at equal attainment.
//
// Units: virtual time is float64 seconds since a run began, shares are 0 to 1, prices are per
// replica-hour, as in package simulation.
//
// Limits: one model in a fleet, with any number of variants. Runs are independent of each other: a
// seed gives the same outcomes whatever the number of jobs.
package evaluation
