// Package chart renders the Helm chart of deploy/chart/wva with many values, by the helm of bin/ or
// the one that the variable HELM names, and checks the objects: their fields by the types of
// Kubernetes, the configuration and the arguments by the server's own code, the certificates by
// TLS. It is a module of its own, so that `go test ./...` of the product needs no helm.
//
// The files of testdata/values are the values. The tests beside a cluster apply the same ones.
package chart
