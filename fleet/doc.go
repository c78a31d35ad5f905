// Package fleet defines the nouns of the product: the observations of a fleet of inference engines
// (Snapshot, a set of tables), the decisions about it (Plan), and the table of reason codes
// (Codes).
//
// Units: rates are per second, KV cache is counted in tokens, prices are in the user's currency per
// replica-hour, lengths of requests are in tokens, durations are time.Duration. Times are UTC.
//
// Limits: the package decides nothing and imports the standard library only. Values are immutable
// once they are shared. Something that was not observed is a missing row or a Reading whose state
// is Absent; it is never a zero.
package fleet
