package config

import (
	"reflect"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// settingsOfSome are the settings that change the decisions of some variants only. Any other one
// may change those of all.
var settingsOfSome = []string{"models", "serviceClasses", "maxAccelerators", keyZeroEnabled}

// Affected returns how many of the variants the change from one configuration to another may
// decide otherwise. Of a setting that all decisions depend on, that is all.
func (c *Config) Affected(before *Config, variants []fleet.Variant) int {
	for _, s := range Settings() {
		if !slices.Contains(settingsOfSome, s.Key) && !s.binding.same(before, c) {
			return len(variants)
		}
	}
	affected := 0
	for i := range variants {
		if !reflect.DeepEqual(before.effectOn(variants[i]), c.effectOn(variants[i])) {
			affected++
		}
	}
	return affected
}

// effect is all that settings of some variants change of one.
type effect struct {
	variant  fleet.Variant
	model    fleet.Model
	class    fleet.ServiceClass
	limits   []fleet.Limit
	profiles []fleet.Profile
}

func (c *Config) effectOn(v fleet.Variant) effect {
	e := effect{variant: c.declare(v), model: c.modelOf(v.Model), limits: c.limitsOf(v.ID.Namespace)}
	for _, class := range c.ServiceClasses {
		if class.Name == e.variant.ServiceClass {
			e.class = class
		}
	}
	if own := c.tenants[v.ID.Namespace]; own != nil {
		e.profiles = own.settings.Profiles
	}
	return e
}
