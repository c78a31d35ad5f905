// Package scaledobject reads a KEDA ScaledObject as a fleet.Variant, lints it, and renders the one
// that is recommended.
//
// Read reads a whole object. ReadMetadata reads the metadata of a trigger, which KEDA sends with
// every RPC. ReadDryRun reads the annotations of any object, which declare a variant without a
// trigger. Each returns all validation errors at once. Lint returns findings: definitions that are
// valid and do not scale as they should. Unsupported tells why KEDA would not apply the number as
// it is meant. Render is the inverse of Read. One table, which Keys returns, describes the metadata
// keys; the reader, its error texts, the rendering and docs/reference/scaledobject.md come from it.
//
// Units: counts are whole replicas or accelerators, cost is the price of one replica for an hour,
// durations are time.Duration (in KEDA's fields, whole seconds).
//
// Limits: objects are decoded by the caller; YAML is not read here. Values are untrusted, and their
// length is checked before they are parsed. Texts for people hold no value of a key that is not in
// the table: the metadata of RPCs contain the resolved secrets of *FromEnv keys.
package scaledobject
