// Package cluster watches the objects of a fleet at an API server: ScaledObjects, their scale
// targets, pods, nodes and HPAs. Its tables are rebuilt when an object changes. It writes nothing.
// While a resource cannot be read, its last state is used, and a problem says so.
//
// Units: durations are time.Duration, times are UTC.
//
// Limits: of node autoscalers, Karpenter (karpenter.sh/v1) and Cluster Autoscaler (by its status in
// kube-system) are seen; while one of the two cannot be read, all pools are elastic without a
// limit. With Options.DryRun all Deployments, StatefulSets and LeaderWorkerSets are in
// memory, named by a variant or not: about 30 MB for 10,000.
package cluster
