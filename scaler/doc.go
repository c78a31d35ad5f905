// Package scaler runs the loop that decides, keeps the latest plan on a board, and answers KEDA and
// operators from it over gRPC.
//
// Units: replicas are counted, durations are time.Duration. The clock of the board is the clock of
// the whole package, so that a caller in virtual time moves everything except the limits on real
// sockets: the deadline of a cycle and the bound of a shutdown.
//
// Limits: the package decides nothing and observes nothing; both are functions that it is given.
// Every RPC is answered from memory. Nothing survives a restart, on purpose: the first cycle
// rebuilds the plan.
package scaler
