package collector

import "time"

// InstantOfTurn returns the latest instant of the turn of a model in a cycle, with the options'
// defaults.
func InstantOfTurn(namespace, model string, cycle time.Time) time.Time {
	t := Options{}.withDefaults().turns()
	return t.instant(t.of(identity{namespace: namespace, model: model}), cycle)
}
