// Package scaler runs the loop that decides, keeps the latest plan on a board, and answers KEDA and the operators from it
// over gRPC.
//
// Units: replicas are counted, durations are time.Duration; the clock of the board is the clock of the room, so that a
// caller in virtual time moves everything but the guards on real sockets (a cycle's deadline, the bound of a shutdown).
//
// Limits: the package decides nothing and observes nothing; both are functions that it is given. Every RPC is answered
// from memory. Nothing survives a restart, on purpose: the first cycle rebuilds the plan.
package scaler
