package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
)

// mostRows is the most rows of each list in the ConfigMaps of a tenant's namespace: each row is
// compared with each model of the namespace.
const mostRows = 100

// overrides are the settings of one namespace, from its own ConfigMaps. They count for its variants
// only, and within the administrator's limits.
type overrides struct {
	parts    []file
	settings Config // of the settings that are set
	origins  map[string]Origin
}

// readOverrides reads the parts of the ConfigMaps of a tenant's namespace.
func readOverrides(namespace string, parts []file) (*overrides, []error) {
	given := newDocuments(Settings())
	var errs []error
	for _, part := range parts {
		errs = append(errs, given.add(part, ScopeNamespace)...)
	}
	o := &overrides{parts: parts, origins: make(map[string]Origin)}
	for _, s := range given.settings {
		value, set := given.values[s.Key]
		if !set {
			continue
		}
		o.origins[s.Key] = given.origin(value)
		given.validate(s, &o.settings) // errors were returned when it was read
	}
	return o, append(errs, o.confine(namespace)...)
}

// confine gives each row the namespace of the ConfigMaps, and returns an error for each that names
// another one.
func (o *overrides) confine(namespace string) (errs []error) {
	own := func(key string, field *string) {
		if *field != "" && *field != "*" && *field != namespace {
			errs = append(errs, &ValidationError{
				Key: key, Origin: o.origins[key], Problem: "has a row for namespace " + quoted(*field) + ", and counts in " + namespace + " only",
				Remedy: "remove namespace from the row",
			})
		}
		*field = namespace
	}
	for i := range o.settings.Models {
		own("models", &o.settings.Models[i].Namespace)
	}
	for i := range o.settings.MaxAccelerators {
		own("maxAccelerators", &o.settings.MaxAccelerators[i].Namespace)
	}
	for i := range o.settings.Profiles {
		o.settings.Profiles[i].Namespace = namespace
	}
	return errs
}

// Declare returns the variants with the service class and the objective of the configuration, if
// they state none, and with a finding for each setting of their namespace that exceeds a limit of
// the administrator.
func (c *Config) Declare(variants []fleet.Variant) []fleet.Variant {
	var declared []fleet.Variant
	for i := range variants {
		v := c.declare(variants[i])
		if declared == nil && (v.ServiceClass != variants[i].ServiceClass || v.Objective != variants[i].Objective || len(v.Findings) != len(variants[i].Findings)) {
			declared = slices.Clone(variants)
		}
		if declared != nil {
			declared[i] = v
		}
	}
	if declared == nil {
		return variants
	}
	return declared
}

func (c *Config) declare(v fleet.Variant) fleet.Variant {
	var row ModelRow
	for _, m := range c.rowsOf(v.ID.Namespace) {
		if !m.Matches(v.Model) {
			continue
		}
		if m.ServiceClass != "" {
			row.ServiceClass = m.ServiceClass
		}
		if m.Objective != (fleet.Objective{}) {
			row.Objective = m.Objective
		}
	}
	if v.ServiceClass == "" {
		v.ServiceClass = row.ServiceClass
	}
	if v.Objective.TTFT == 0 && v.Objective.ITL == 0 {
		if row.Objective == (fleet.Objective{}) {
			row.Objective = c.objectiveOf(v)
		}
		if row.Objective != (fleet.Objective{}) {
			v.Objective = row.Objective
		}
	}
	if texts := c.overreach(v); len(texts) > 0 {
		v.Findings = slices.Clone(v.Findings)
		for _, text := range texts {
			v.Findings = append(v.Findings, fleet.Finding{
				Code: fleet.CodeSettingLimited, Text: text + ", which is used", Remedy: "lower it in the ConfigMap, or let the administrator raise the limit",
			})
		}
		v.Findings = fleet.SortFindings(v.Findings)
	}
	return v
}

// rowsOf returns the rows of models for a namespace: the administrator's, then its own.
func (c *Config) rowsOf(namespace string) []ModelRow {
	if own := c.tenants[namespace]; own != nil && len(own.settings.Models) > 0 {
		return slices.Concat(c.Models, own.settings.Models)
	}
	return c.Models
}

// objectiveOf returns the objective of a variant's service class, if it may have the class.
func (c *Config) objectiveOf(v fleet.Variant) fleet.Objective {
	for _, class := range c.ServiceClasses {
		if class.Name == v.ServiceClass && class.GrantedTo(v.ID.Namespace) {
			return class.Objective
		}
	}
	return fleet.Objective{}
}

// ownZero returns the settings of scale to zero by the ConfigMaps of a model's namespace: whether
// they allow it, or nil, and the retention, or zero.
func (c *Config) ownZero(id fleet.ModelID) (allowed *bool, retention time.Duration) {
	own := c.tenants[id.Namespace]
	if own == nil {
		return nil, 0
	}
	if _, set := own.origins[keyZeroEnabled]; set {
		allowed = &own.settings.ScaleToZero.Enabled
	}
	retention = own.settings.ScaleToZero.Retention
	for _, row := range own.settings.Models {
		if !row.Matches(id) {
			continue
		}
		if row.ScaleToZero != nil {
			allowed = row.ScaleToZero
		}
		if row.Retention > 0 {
			retention = row.Retention
		}
	}
	return allowed, retention
}

// keyZeroEnabled is the setting that allows models to scale to zero.
const keyZeroEnabled = "scaleToZero.enabled"

// overreach returns the settings of a variant's namespace that exceed the administrator's limits,
// with the limit, a text each.
func (c *Config) overreach(v fleet.Variant) (texts []string) {
	if c.tenants[v.ID.Namespace] == nil {
		return nil
	}
	allowed, retention := c.ownZero(v.Model)
	if allowed != nil && *allowed && c.grantedModel(v.Model).ScaleToZeroOff {
		texts = append(texts, "scaleToZero is true, and the administrator has it false")
	}
	if most := c.longestRetention(); retention > most {
		texts = append(texts, fmt.Sprintf("retention is %s, and the longest that the administrator grants is %s", formatDuration(retention), formatDuration(most)))
	}
	texts = append(texts, c.raisedMaxima(v.ID.Namespace)...)
	for i, text := range texts {
		texts[i] = "in the " + c.tenants[v.ID.Namespace].names() + " " + text
	}
	return texts
}

// names returns the ConfigMaps for people: "ConfigMap team-a/wva", or several.
func (o *overrides) names() string {
	var names []string
	for _, part := range o.parts {
		name, _, _ := strings.Cut(part.path, keySeparator)
		names = append(names, name)
	}
	if names = slices.Compact(names); len(names) == 1 {
		return "ConfigMap " + names[0]
	}
	return "ConfigMaps " + strings.Join(names, " and ")
}
