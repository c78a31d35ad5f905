// Package cluster runs a real Kubernetes control plane as plain processes: no container engine, no
// root.
//
// [Enter], called first in TestMain, builds the missing components (kube-apiserver and others, from
// Go modules) and starts the test binary again in namespaces of its own: user, network, mount and
// PID. Tests and servers share that private network, and every process in it dies with the test
// binary, however that ends. [Start] then starts a cluster for one test, in about three seconds.
// Linux only.
package cluster
