// Package cluster watches the objects of a fleet at an API server: ScaledObjects, their scale
// targets, pods, nodes and HPAs. Its tables are rebuilt when an object changes. It writes nothing.
// While a resource cannot be read, its last state is used, and a problem says so.
//
// Units: durations are time.Duration, times are UTC.
//
// Limits: nodes do not tell whether a node autoscaler adds more of them, so all pools are elastic
// without a limit. With Options.DryRun all Deployments, StatefulSets and LeaderWorkerSets are in
// memory, named by a variant or not: about 30 MB for 10,000.
package cluster
