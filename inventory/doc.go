// Package inventory turns Kubernetes objects into tables of a snapshot: variants, workloads with
// their pods, and accelerators on nodes.
//
// It has two halves. Decode and Objects.Tables are pure: objects in, tables out, sorted, the same
// for the same objects in any order. Directory reads the objects from manifests, for use without a
// cluster. Cluster watches them at an API server. While a source cannot be read, both keep the last
// state that was read, and report a problem.
//
// EventWriter and Lease are the only parts that write: events on ScaledObjects, and the lease that
// decides which replica writes them.
//
// Units: replicas and accelerators are whole numbers, durations are time.Duration, times are UTC.
//
// Limits: a value that no object states is unknown (zero, or a missing row). Accelerators are
// counted by extended resources and node labels; dynamic resource allocation and slices of a GPU
// (MIG) are not read. Nodes do not tell whether a node autoscaler adds more of them: the pools of a
// directory are fixed, those of a cluster elastic without a limit. The pods of a group that have
// accelerators allocated are assumed to have equally many. With ClusterOptions.DryRun all
// Deployments, StatefulSets and LeaderWorkerSets are in memory, named by a variant or not: about 30
// MB for 10,000.
package inventory
