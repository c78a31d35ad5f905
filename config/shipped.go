package config

import (
	"errors"

	"github.com/wva-project/wva/fleet"
)

// ShippedProfiles returns the profiles that the product ships, as they count where nothing is configured.
func ShippedProfiles() ([]fleet.Profile, error) {
	c := Config{ProfileCatalogue: On}
	faults := c.readCatalogue()
	return c.catalogue, errors.Join(faults...)
}
