package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/wva-project/wva/fleet"
)

// ModelRow is a row of models: who may scale to zero, and the class and the objective of variants
// that state none. Of the rows that match a model, a later one overrides an earlier one field by
// field; ttft, itl and percentile are one field.
type ModelRow struct {
	// Namespace and Model are patterns, in which * stands for any characters; empty: all.
	Namespace, Model string
	// ScaleToZero allows the models to scale to zero, or not. Nil: the row does not say.
	ScaleToZero *bool
	// Retention is how long the models must be idle before they may scale to zero. Zero: the row
	// does not say.
	Retention time.Duration
	// ServiceClass and Objective are those of variants that state none. Zero: the row does not say.
	ServiceClass string
	Objective    fleet.Objective
}

// Matches reports whether the row is about a model.
func (r ModelRow) Matches(id fleet.ModelID) bool {
	return (r.Namespace == "" || fleet.MatchPattern(r.Namespace, id.Namespace)) && (r.Model == "" || fleet.MatchPattern(r.Model, id.Name))
}

// name returns the patterns of the row as it would be written.
func (r ModelRow) name() string {
	var parts []string
	if r.Namespace != "" {
		parts = append(parts, "namespace: "+r.Namespace)
	}
	if r.Model != "" {
		parts = append(parts, "model: "+r.Model)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// identity is equal for rows that match the same models.
func (r ModelRow) identity() string {
	for _, pattern := range []*string{&r.Namespace, &r.Model} {
		if *pattern == "" {
			*pattern = "*"
		}
	}
	return r.name()
}

// ModelsOf returns a row for each model of the variants for which the configuration differs from
// the default of fleet.Model: zero is allowed, after the retention of the policy. Sorted by model.
func (c *Config) ModelsOf(variants []fleet.Variant) []fleet.Model {
	var ids []fleet.ModelID
	for i := range variants {
		if id := variants[i].Model; id.Name != "" { // an invalid definition may have none
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, fleet.ModelID.Compare)
	var models []fleet.Model
	for _, id := range slices.Compact(ids) {
		if m := c.modelOf(id); m != (fleet.Model{ID: id}) {
			models = append(models, m)
		}
	}
	return models
}

// modelOf returns the row of a model. The ConfigMaps of its namespace may forbid scale to zero and
// change the retention; they allow no scale to zero that the administrator does not.
func (c *Config) modelOf(id fleet.ModelID) fleet.Model {
	m := c.grantedModel(id)
	allowed, retention := c.ownZero(id)
	if allowed != nil && !*allowed {
		m.ScaleToZeroOff = true
	}
	if retention > 0 {
		m.Retention = min(retention, c.longestRetention())
	}
	return m
}

// grantedModel returns the row of a model by the administrator's settings alone.
func (c *Config) grantedModel(id fleet.ModelID) fleet.Model {
	m := fleet.Model{ID: id, ScaleToZeroOff: !c.ScaleToZero.Enabled}
	for _, row := range c.Models {
		if !row.Matches(id) {
			continue
		}
		if row.ScaleToZero != nil {
			m.ScaleToZeroOff = !*row.ScaleToZero
		}
		if row.Retention > 0 {
			m.Retention = row.Retention
		}
	}
	return m
}

// models is the list of models.
func models(field func(*Config) *[]ModelRow) binding {
	return list[ModelRow]{
		name: "models", accepted: `a list such as [{namespace: team-a, model: "meta-llama/*", scaleToZero: false}, {namespace: team-b, retention: 30m}]`,
		field: field, identity: ModelRow.identity, read: readModel, write: writeModel,
		merging: rowIdentity{fields: []string{"namespace", "model"}},
	}
}

const allowedModel = `the model's name as in modelID, with * for any characters, such as "meta-llama/*"`

func readModel(item *yaml.Node) (ModelRow, []problem) {
	r := newRowReader(item, "namespace", "model", "scaleToZero", "retention", "serviceClass", "ttft", "itl", "percentile")
	var m ModelRow
	r.field("namespace", false, allowedNamespace, func(text string) string {
		m.Namespace = text
		return checkNamespace(text)
	})
	r.text("model", false, allowedModel, &m.Model)
	r.field("scaleToZero", false, boolean().allowed, func(text string) string {
		allowed, wrong := boolean().parse(text)
		m.ScaleToZero = &allowed
		return wrong
	})
	retention := duration(leastRetention, mostRetention, "30m")
	r.field("retention", false, retention.allowed, func(text string) (wrong string) {
		m.Retention, wrong = retention.parse(text)
		return wrong
	})
	r.text("serviceClass", false, "a name in serviceClasses", &m.ServiceClass)
	m.Objective = r.objective()
	if len(r.problems) == 0 {
		r.problems = m.incomplete(item)
	}
	return m, r.problems
}

// incomplete returns the problem of a row whose fields are valid one by one.
func (r ModelRow) incomplete(item *yaml.Node) []problem {
	namespace, model, slash := strings.Cut(r.Model, "/")
	switch {
	case r.Namespace == "" && r.Model == "":
		return []problem{{item, "has a row without namespace and model", "write one of them or both; * stands for any characters"}}
	case r.ScaleToZero == nil && r.Retention == 0 && r.ServiceClass == "" && r.Objective == (fleet.Objective{}):
		return []problem{{item, "has a row that sets nothing: " + r.name(), "add scaleToZero, retention, serviceClass, ttft or itl"}}
	case slash && r.Namespace == "" && strings.Contains(model, "/") && isLabel(namespace):
		// The name of a model has one slash at most, as a rule.
		return []problem{{
			item, "model " + quoted(r.Model) + " seems to begin with a namespace, which is a field of its own",
			"write " + ModelRow{Namespace: namespace, Model: model}.name() + `, or add namespace: "*" if this is the name of the model`,
		}}
	}
	return nil
}

// writeModel writes the fields of a row that are set.
func writeModel(m ModelRow) *yaml.Node {
	row := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	put := func(name string, value *yaml.Node, given bool) {
		if given {
			row.Content = append(row.Content, textNode(name), value)
		}
	}
	put("namespace", textNode(m.Namespace), m.Namespace != "")
	put("model", textNode(m.Model), m.Model != "")
	if m.ScaleToZero != nil {
		put("scaleToZero", plainNode("!!bool", strconv.FormatBool(*m.ScaleToZero)), true)
	}
	put("retention", textNode(formatDuration(m.Retention)), m.Retention > 0)
	put("serviceClass", textNode(m.ServiceClass), m.ServiceClass != "")
	row.Content = append(row.Content, objectiveNodes(m.Objective)...)
	return row
}

const (
	lowerCase        = "abcdefghijklmnopqrstuvwxyz0123456789-"
	allowedNamespace = `a namespace, with * for any characters, such as team-a or "prod-*"`
)

// checkNamespace returns why a text is no pattern of namespaces; empty if it is one.
func checkNamespace(text string) string {
	if text == "" || len(text) > longestName || strings.Trim(text, lowerCase+"*") != "" {
		return "is not a namespace"
	}
	return ""
}

// isLabel reports whether a text could be the name of a namespace.
func isLabel(text string) bool { return text != "" && strings.Trim(text, lowerCase) == "" }

// retentionWarnings names retentions that are long or set nothing.
func (c *Config) retentionWarnings() []string {
	const effect = " is long: each cycle queries Prometheus that far back, and samples must cover the whole time"
	var warnings []string
	if retention := c.ScaleToZero.Retention; retention > longRetention {
		warnings = append(warnings, "scaleToZero.retention of "+formatDuration(retention)+effect)
	}
	for _, m := range c.Models {
		if m.Retention > longRetention {
			warnings = append(warnings, "retention of "+formatDuration(m.Retention)+" of models "+m.name()+effect)
		}
		if m.Retention > 0 && m.never() {
			warnings = append(warnings, "retention of models "+m.name()+" sets nothing: scaleToZero is false")
		}
	}
	return warnings
}

// never reports whether the row itself turns scale to zero off.
func (r ModelRow) never() bool { return r.ScaleToZero != nil && !*r.ScaleToZero }

// IdleWindow returns the time in which the last use of a model is searched: the idle window, or the
// longest retention that applies to any of the variants, if that is longer. A scaleToZeroAfter of a
// variant, and a retention of a tenant, count up to the long window, which is queried anyway: no
// object makes the queries of everybody longer than that.
func (c *Config) IdleWindow(variants []fleet.Variant) time.Duration {
	longest, limit := c.grantedIdle(), c.longestRetention()
	for i := range variants {
		_, retention := c.ownZero(variants[i].Model)
		longest = max(longest, min(limit, max(retention, variants[i].ScaleToZeroAfter)))
	}
	return longest
}

// grantedIdle returns the idle window of the administrator's settings alone.
func (c *Config) grantedIdle() time.Duration {
	longest := max(c.Prometheus.Windows.Idle, c.ScaleToZero.Retention)
	for _, row := range c.Models {
		if !row.never() {
			longest = max(longest, row.Retention)
		}
	}
	return longest
}

// longestRetention returns the longest retention that a tenant may set.
func (c *Config) longestRetention() time.Duration {
	return max(c.grantedIdle(), c.Prometheus.Windows.Long)
}
