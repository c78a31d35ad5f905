// Package scaledobject reads a KEDA ScaledObject as a fleet.Variant, lints it, and renders the one that is recommended.
//
// Read takes the whole object; ReadMetadata takes what an RPC of KEDA carries, which is the trigger's metadata and the
// object's name; ReadAdvisory takes annotations of any object, which declare a variant that is only to be advised. All report
// every fault at once. Lint says what reads well but would scale badly: warnings, and refusals
// where KEDA would misapply the number; Refusal returns the first of these. Render is the inverse of Read. One table, which
// Keys returns, describes the metadata keys; the reader, its error texts and the rendering come from it.
//
// Units: counts are whole replicas or GPUs, cost is the price of one replica for an hour, durations are time.Duration
// (KEDA's own are whole seconds).
//
// Limits: values are taken decoded; YAML is read by the caller. An object is trusted as little as a request: values are
// length-checked before they are parsed, and a text for people never shows a value whose key is not in the table, since
// RPC metadata holds the resolved secrets of *FromEnv keys.
package scaledobject
