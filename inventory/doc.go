// Package inventory turns Kubernetes objects into tables of a snapshot: variants, workloads with
// their pods, and accelerators on nodes. It is pure: Decode reads one object, and Objects.Tables
// returns the tables of all of them, sorted, the same for the same objects in any order.
//
// The objects come from package inventory/cluster, which watches an API server, or from
// inventory/manifests, which reads a directory.
//
// Units: replicas and accelerators are whole numbers, durations are time.Duration, times are UTC.
//
// Limits: a value that no object states is unknown (zero, or a missing row). Accelerators are
// counted by extended resources and node labels, and by dynamic resource allocation (v1); slices of
// a GPU (MIG) too. CEL is not evaluated. Nodes are open to all variants of an accelerator type or
// to none. The pods of a group that have accelerators allocated are assumed to have equally many.
package inventory
