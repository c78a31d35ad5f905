// Package wva documents the Workload Variant Autoscaler, a KEDA external scaler that decides how
// many replicas of each variant of an LLM run. A variant is one way of serving a model: a workload
// on one accelerator type, at a price.
//
// Everything that one decision depends on is one value, fleet.Snapshot. A decision is planner.Plan
// of a snapshot and a policy. The rest is plumbing: collector, inventory and config each fill their
// tables of the snapshot; planner asks analyzer for the capacity of a replica and solver for the
// cheapest mix; scaler posts the plan on its board and answers KEDA from there, from memory. A
// variant that cannot be decided is held: its replicas are kept, and the plan says why.
//
// The pure packages (fleet, engine, scaledobject, analyzer, solver, planner, simulation) know no
// clock, network, file or log; time and randomness are their arguments. Each other package keeps
// one dependency to itself, and siblings meet in cmd only. The demo wires the product to a
// simulated fleet, an in-process Prometheus and a stand-in for KEDA and the HPA.
//
// The table in architecture_test.go has the import rules of docs/architecture.md. The package
// itself holds no code.
package wva
