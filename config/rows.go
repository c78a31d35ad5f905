package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/wva-project/wva/fleet"
)

// Bounds of a retention.
const (
	leastRetention = 10 * time.Second
	mostRetention  = 30 * 24 * time.Hour
	longRetention  = 24 * time.Hour // a longer one causes a warning
)

// longestName bounds the texts of a row, in bytes.
const longestName = 256

// mostPriority is the largest absolute value of the priority of a service class.
const mostPriority = 1000

// mostPrice is the highest price of an accelerator for an hour.
const mostPrice = 1e6

// names is a list of names. In a variable or flag they are separated by commas.
func names(field func(*Config) *[]string) binding {
	return list[string]{
		name: "names", accepted: "a list of names; in a variable or flag, separated by commas",
		field:    field,
		identity: func(name string) string { return name },
		write:    textNode,
		read: func(item *yaml.Node) (string, []problem) {
			if item.Kind != yaml.ScalarNode || strings.TrimSpace(item.Value) == "" || isNull(item) || !printable(item.Value) {
				return "", []problem{{item, "has an entry that is not a name", "write one name for each entry"}}
			}
			return strings.TrimSpace(item.Value), nil
		},
		split: func(text string) *yaml.Node {
			sequence := &yaml.Node{Kind: yaml.SequenceNode}
			for part := range strings.SplitSeq(text, ",") {
				if part = strings.TrimSpace(part); part != "" {
					sequence.Content = append(sequence.Content, textNode(part))
				}
			}
			return sequence
		},
	}
}

// classes is the list of service classes.
func classes(field func(*Config) *[]fleet.ServiceClass) binding {
	return list[fleet.ServiceClass]{
		name: "classes", accepted: `a list such as [{name: premium, priority: 10, namespaces: [team-a, "prod-*"], ttft: 500ms}]`,
		field:    field,
		identity: func(c fleet.ServiceClass) string { return c.Name },
		merging:  rowIdentity{fields: []string{"name"}},
		read:     readClass,
		write: func(c fleet.ServiceClass) *yaml.Node {
			fields := []*yaml.Node{textNode("name"), textNode(c.Name), textNode("priority"), wholeNode(c.Priority)}
			if len(c.Namespaces) > 0 {
				namespaces := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
				for _, pattern := range c.Namespaces {
					namespaces.Content = append(namespaces.Content, textNode(pattern))
				}
				fields = append(fields, textNode("namespaces"), namespaces)
			}
			fields = append(fields, objectiveNodes(c.Objective)...)
			return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: fields}
		},
	}
}

func readClass(item *yaml.Node) (fleet.ServiceClass, []problem) {
	r := newRowReader(item, "name", "priority", "namespaces", "ttft", "itl", "percentile")
	var c fleet.ServiceClass
	r.field("name", true, "the name that variants use, such as premium", func(text string) string {
		c.Name = text
		if strings.TrimSpace(text) != text || text == "" {
			return "is not a name"
		}
		return ""
	})
	r.whole("priority", true, integer(-mostPriority, mostPriority), &c.Priority)
	c.Namespaces = r.namespaces("namespaces")
	c.Objective = r.objective()
	return c, r.problems
}

// accelerators is the accelerator catalogue.
func accelerators(field func(*Config) *[]fleet.AcceleratorSpec) binding {
	return list[fleet.AcceleratorSpec]{
		name: "accelerators", accepted: "a list such as [{name: H100, speed: 3.2, price: 4.1}]",
		field:    field,
		identity: func(a fleet.AcceleratorSpec) string { return string(a.Name) },
		merging:  rowIdentity{fields: []string{"name"}},
		read:     readAccelerator,
		write: func(a fleet.AcceleratorSpec) *yaml.Node {
			fields := []*yaml.Node{textNode("name"), textNode(string(a.Name)), textNode("speed"), decimalNode(a.Speed)}
			if a.Price > 0 {
				fields = append(fields, textNode("price"), decimalNode(a.Price))
			}
			return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: fields}
		},
	}
}

func readAccelerator(item *yaml.Node) (fleet.AcceleratorSpec, []problem) {
	r := newRowReader(item, "name", "speed", "price")
	var a fleet.AcceleratorSpec
	r.field("name", true, "the name that variants use, such as H100", func(text string) string {
		a.Name = fleet.Accelerator(text)
		if strings.TrimSpace(text) != text || text == "" {
			return "is not a name"
		}
		return ""
	})
	r.number("speed", true, number(0.001, 1e6), &a.Speed)
	r.number("price", false, above0(mostPrice), &a.Price)
	return a, r.problems
}

// rowReader reads one row of a list.
type rowReader struct {
	item     *yaml.Node
	values   map[string]*yaml.Node // by key
	problems []problem
}

func newRowReader(item *yaml.Node, known ...string) *rowReader {
	r := &rowReader{item: item, values: make(map[string]*yaml.Node)}
	if item.Kind != yaml.MappingNode {
		r.reject(item, "has a row that is a "+nodeType(item), "write each row as {"+strings.Join(known, ": ..., ")+": ...}")
		return r
	}
	pairs, wrong := pairsOf(item)
	r.problems = wrong
	for _, p := range pairs {
		switch isKnown := slices.Contains(known, p.key.Value); {
		case isKnown && !isNull(p.value):
			r.values[p.key.Value] = p.value
		case !isKnown:
			remedy := "write one of " + strings.Join(known, ", ")
			if near, found := fleet.Nearest(p.key.Value, known); found {
				remedy = "did you mean " + near + "?"
			}
			r.reject(p.key, "unknown key "+quoted(p.key.Value), remedy)
		}
	}
	return r
}

func (r *rowReader) reject(node *yaml.Node, text, remedy string) {
	r.problems = append(r.problems, problem{node, text, remedy})
}

// field reads one value of the row, if it is given.
func (r *rowReader) field(name string, required bool, allowed string, set func(text string) (wrong string)) {
	value, given := r.values[name]
	remedy := "write " + allowed
	switch {
	case r.item.Kind != yaml.MappingNode:
	case !given && required:
		r.reject(r.item, "has a row without "+name, remedy)
	case !given:
	case value.Kind != yaml.ScalarNode:
		r.reject(value, name+" is a "+nodeType(value), remedy)
	case !printable(value.Value):
		r.reject(value, name+" "+quoted(value.Value)+" contains characters that cannot be printed", remedy)
	default:
		if wrong := set(value.Value); wrong != "" {
			r.reject(value, name+" "+quoted(value.Value)+" "+wrong, remedy)
		}
	}
}

// text reads a text that is not empty.
func (r *rowReader) text(name string, required bool, allowed string, at *string) {
	r.field(name, required, fmt.Sprintf("%s; at most %d bytes", allowed, longestName), func(text string) string {
		*at = text
		switch {
		case strings.TrimSpace(text) != text || text == "":
			return "is empty, or has spaces around it"
		case len(text) > longestName:
			return "is too long"
		}
		return ""
	})
}

// number reads a number within bounds.
func (r *rowReader) number(name string, required bool, t valueType[float64], at *float64) {
	r.field(name, required, t.allowed, func(text string) (wrong string) {
		*at, wrong = t.parse(text)
		return wrong
	})
}

// whole reads a whole number within bounds.
func (r *rowReader) whole(name string, required bool, t valueType[int], at *int) {
	r.field(name, required, t.allowed, func(text string) (wrong string) {
		*at, wrong = t.parse(text)
		return wrong
	})
}

// namespaces reads a list of patterns of namespaces, if it is given.
func (r *rowReader) namespaces(name string) []string {
	list, given := r.values[name]
	const remedy = `write a list of namespaces, with * for any characters, such as [team-a, "prod-*"]`
	if given && list.Kind != yaml.SequenceNode {
		r.reject(list, name+" is a "+nodeType(list), remedy)
	}
	if !given || list.Kind != yaml.SequenceNode {
		return nil
	}
	var patterns []string
	for _, entry := range list.Content {
		if entry.Kind != yaml.ScalarNode || isNull(entry) || checkNamespace(entry.Value) != "" {
			text := "an entry"
			if entry.Kind == yaml.ScalarNode && printable(entry.Value) {
				text = quoted(entry.Value)
			}
			r.reject(entry, name+" contains "+text+", which is not a namespace", remedy)
			continue
		}
		patterns = append(patterns, entry.Value)
	}
	return patterns
}

func decimalNode(x float64) *yaml.Node {
	return plainNode("", strconv.FormatFloat(x, 'g', -1, 64))
}
