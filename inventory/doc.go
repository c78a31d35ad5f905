// Package inventory turns Kubernetes objects into the tables of a snapshot that say what there is: variants, workloads with
// their pods, and accelerators on nodes.
//
// It has two halves. Decode and Objects.Tables are pure: objects in, tables out, sorted, the same for the same objects in
// any order. Directory feeds them from a directory of manifests, for use without a cluster; Cluster feeds them in the same
// way from what it watches at an API server. Both keep what they have seen while they cannot see more, and say so.
//
// Units: replicas and accelerators are whole numbers, durations are time.Duration, times are UTC.
//
// Limits: what an object does not say stays unsaid (zero, or a missing row). Accelerators are counted by extended resources
// and node labels; dynamic resource allocation and slices of a GPU (MIG) are not read. Whether a node autoscaler stands
// behind a pool is not told by its nodes: the pools of a directory are fixed, those of a cluster elastic without a limit. The pods
// of a group that hold accelerators are taken to hold equally many. With ClusterOptions.Advisory all Deployments,
// StatefulSets and LeaderWorkerSets are held, named by a variant or not: about 30 MB for 10,000.
package inventory
