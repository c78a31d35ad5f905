// Package conformance drives the server with KEDA's own client code, pkg/scalers of KEDA 2.21: one
// test for each rule of the external scaler contract that a client can see. It is a module of its
// own, so that KEDA's dependencies stay out of the product's.
//
// Most tests run the server in the test's process and post the plans themselves; those of the
// command build and start cmd/wva. KEDA's back-off runs in real time, so that some tests take a few
// seconds.
package conformance
