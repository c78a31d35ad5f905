// Package service makes the Services of a cluster work in a network whose addresses are all those
// of the loopback: a DNS server answers their names, and a relay leads from the address of a
// Service to its ready pods.
//
// The relay is needed only for pods that have a network of their own. All other addresses are
// answered by the listeners of the loopback; there, a Service's port is its target port. TCP only,
// without affinity; the names are those of Services, not of pods.
package service
