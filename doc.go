// Package wva documents the Workload Variant Autoscaler, a KEDA external scaler that decides how many replicas of each
// variant of an LLM run. A variant is one way of serving a model: a workload on one kind of accelerator, at a price.
//
// Everything one decision depends on is one value, fleet.Snapshot. A decision is planner.Plan of a snapshot and a policy.
// Everything else is plumbing: collector, inventory and config each fill their tables of the snapshot; planner asks
// analyzer what a replica carries and solver for the cheapest mix; scaler posts the plan on its board and answers KEDA
// from there, from memory. What cannot be decided is held: its number stays, and the plan says why.
//
// The pure rooms (fleet, scaledobject, analyzer, solver, planner, simulation) know no clock, network, file or log; time
// and randomness are their arguments. Each room of the shell quarantines one dependency, and siblings meet in cmd only.
// The demo wires the product to a simulated fleet, an in-process Prometheus and a stand-in for KEDA and the HPA.
//
// The table in architecture_test.go is the drawing of docs/architecture.md: who may import whom. The package itself
// holds no code.
package wva
