package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wva-project/wva/fleet"
)

// mostAccelerators is the largest maximum of a namespace.
const mostAccelerators = 1_000_000

// MaxRow is a row of maxAccelerators. Of the rows that match a namespace and name the same
// accelerator type, the last counts.
type MaxRow struct {
	Namespace   string            // a pattern
	Accelerator fleet.Accelerator // empty: all types together
	Max         int
}

// maxima is the list of maxima.
func maxima(field func(*Config) *[]MaxRow) binding {
	return list[MaxRow]{
		name: "maxima", accepted: `a list such as [{namespace: "*", max: 16}, {namespace: team-a, accelerator: H100, max: 8}]`,
		field: field, read: readMax,
		identity: func(m MaxRow) string { return m.Namespace + " " + string(m.Accelerator) },
		merging:  rowIdentity{fields: []string{"namespace", "accelerator"}},
		write: func(m MaxRow) *yaml.Node {
			fields := []*yaml.Node{textNode("namespace"), textNode(m.Namespace)}
			if m.Accelerator != "" {
				fields = append(fields, textNode("accelerator"), textNode(string(m.Accelerator)))
			}
			return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: append(fields, textNode("max"), wholeNode(m.Max))}
		},
	}
}

func readMax(item *yaml.Node) (MaxRow, []problem) {
	r := newRowReader(item, "namespace", "accelerator", "max")
	m := MaxRow{Namespace: "*"}
	r.field("namespace", false, allowedNamespace, func(text string) string {
		m.Namespace = text
		return checkNamespace(text)
	})
	r.text("accelerator", false, "the name that variants use, such as H100", (*string)(&m.Accelerator))
	r.whole("max", true, integer(0, mostAccelerators), &m.Max)
	return m, r.problems
}

// LimitsOf returns the maxima of the namespaces of the variants, sorted by namespace, then
// accelerator type. A tenant may lower a maximum of its namespace, or add one, and raises none.
func (c *Config) LimitsOf(variants []fleet.Variant) (limits []fleet.Limit) {
	for _, namespace := range namespacesOf(variants) {
		limits = append(limits, c.limitsOf(namespace)...)
	}
	return limits
}

func (c *Config) limitsOf(namespace string) []fleet.Limit {
	limits := maximaIn(namespace, c.MaxAccelerators)
	if own := c.tenants[namespace]; own != nil {
		for _, limit := range maximaIn(namespace, own.settings.MaxAccelerators) {
			if at := indexOfType(limits, limit.Accelerator); at >= 0 {
				limits[at].Max = min(limits[at].Max, limit.Max)
			} else {
				limits = append(limits, limit)
			}
		}
	}
	slices.SortFunc(limits, func(a, b fleet.Limit) int { return strings.Compare(string(a.Accelerator), string(b.Accelerator)) })
	return limits
}

// maximaIn returns the rows that match a namespace, the last of each accelerator type.
func maximaIn(namespace string, rows []MaxRow) (limits []fleet.Limit) {
	for _, row := range rows {
		if !fleet.MatchPattern(row.Namespace, namespace) {
			continue
		}
		if at := indexOfType(limits, row.Accelerator); at >= 0 {
			limits[at].Max = row.Max
		} else {
			limits = append(limits, fleet.Limit{Namespace: namespace, Accelerator: row.Accelerator, Max: row.Max})
		}
	}
	return limits
}

func indexOfType(limits []fleet.Limit, a fleet.Accelerator) int {
	return slices.IndexFunc(limits, func(l fleet.Limit) bool { return l.Accelerator.Is(string(a)) })
}

// raised returns the maxima of the namespace's own ConfigMaps that are above the administrator's, a
// text each.
func (c *Config) raisedMaxima(namespace string) (texts []string) {
	granted := maximaIn(namespace, c.MaxAccelerators)
	for _, own := range maximaIn(namespace, c.tenants[namespace].settings.MaxAccelerators) {
		if at := indexOfType(granted, own.Accelerator); at >= 0 && own.Max > granted[at].Max {
			texts = append(texts, fmt.Sprintf("maxAccelerators%s is %d, and the administrator grants %d", ofType(own.Accelerator), own.Max, granted[at].Max))
		}
	}
	return texts
}

func ofType(a fleet.Accelerator) string {
	if a == "" {
		return ""
	}
	return " of " + string(a)
}

// namespacesOf returns the namespaces of variants, sorted.
func namespacesOf(variants []fleet.Variant) (names []string) {
	for i := range variants {
		names = append(names, variants[i].ID.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
