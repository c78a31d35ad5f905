package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Effective returns the configuration as a file that sets it, secrets redacted: YAML in the order
// of the table. Comments say how many profiles ship, which are not listed, and which settings are
// invalid or missing.
func (c *Config) Effective() string {
	return encode(c.tree(func(s Setting, value *yaml.Node) { value.LineComment = c.noteOf(s) }))
}

// EffectiveWithOrigins is Effective with a comment at each setting that names the origin of its
// value.
func (c *Config) EffectiveWithOrigins() string {
	return encode(c.tree(func(s Setting, value *yaml.Node) {
		value.LineComment = c.originText(s)
		if note := c.noteOf(s); note != "" {
			value.LineComment += "; " + note
		}
	}))
}

// originText returns the origin of a setting's value, and of the rows that were merged with it.
func (c *Config) originText(s Setting) string {
	texts := []string{c.origins[s.Key].String()}
	for _, beneath := range c.merged[s.Key] {
		texts = append(texts, beneath.String())
	}
	return strings.Join(texts, "; over rows from ")
}

// noteOf returns the comment at a setting; empty for none.
func (c *Config) noteOf(s Setting) string {
	origin, invalid := c.invalid[s.Key]
	switch {
	case invalid && origin.Source == SourceDefault:
		return "required, and missing"
	case invalid:
		return "the value from " + origin.String() + " is invalid"
	case s.note == nil:
		return ""
	}
	return s.note(c)
}

// EffectiveOfNamespaces returns the settings of the ConfigMaps of tenants, as comments with the
// origin of each; empty if there are none.
func (c *Config) EffectiveOfNamespaces() string {
	var text strings.Builder
	for _, namespace := range slices.Sorted(maps.Keys(c.tenants)) {
		own := c.tenants[namespace]
		fmt.Fprintf(&text, "# namespace %s, for its own variants and within the limits of the administrator:\n", namespace)
		for _, s := range Settings() {
			origin, set := own.origins[s.Key]
			if !set {
				continue
			}
			value := s.binding.node(&own.settings)
			value.Style = yaml.FlowStyle
			fmt.Fprintf(&text, "#   %s: %s # %s\n", s.Key, strings.TrimSpace(encode(value)), origin)
		}
	}
	return text.String()
}

// EffectiveJSON is Effective as JSON, without comments.
func (c *Config) EffectiveJSON() string { return encodeJSON(c.tree(func(Setting, *yaml.Node) {})) }

// EffectiveJSONWithOrigins returns an object for each setting, by key, with the fields value and
// origin, and invalid if the value at that origin is invalid or missing.
func (c *Config) EffectiveJSONWithOrigins() string {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range Settings() {
		fields := []*yaml.Node{
			textNode("value"), s.binding.node(c), textNode("origin"), textNode(c.originText(s)),
		}
		if origin, invalid := c.invalid[s.Key]; invalid {
			fields = append(fields, textNode("invalid"), textNode(origin.String()))
		}
		root.Content = append(root.Content, textNode(s.Key), &yaml.Node{Kind: yaml.MappingNode, Content: fields})
	}
	return encodeJSON(root)
}

// tree returns the configuration as YAML nodes, and calls visit for each value.
func (c *Config) tree(visit func(Setting, *yaml.Node)) *yaml.Node {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range Settings() {
		sections := strings.Split(s.Key, ".")
		last := len(sections) - 1
		within := root
		for _, name := range sections[:last] {
			within = child(within, name)
		}
		key, value := textNode(sections[last]), s.binding.node(c)
		if visit(s, value); value.Kind == yaml.SequenceNode && value.Style != yaml.FlowStyle {
			key.LineComment, value.LineComment = value.LineComment, "" // above the rows
		}
		within.Content = append(within.Content, key, value)
	}
	return root
}

// child returns the mapping below a key, which it adds if it is missing.
func child(mapping *yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	added := &yaml.Node{Kind: yaml.MappingNode}
	mapping.Content = append(mapping.Content, textNode(name), added)
	return added
}

func encode(node *yaml.Node) string {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return fmt.Sprintf("# %v\n", err) // scalars, lists and mappings always encode
	}
	return text.String()
}

// encodeJSON writes the nodes as JSON, in their order.
func encodeJSON(node *yaml.Node) string {
	var compact, text bytes.Buffer
	appendJSON(&compact, node)
	if err := json.Indent(&text, compact.Bytes(), "", "  "); err != nil {
		return compact.String()
	}
	return text.String() + "\n"
}

func appendJSON(to *bytes.Buffer, node *yaml.Node) {
	switch node.Kind {
	case yaml.MappingNode:
		to.WriteByte('{')
		for i := 0; i+1 < len(node.Content); i += 2 {
			if i > 0 {
				to.WriteByte(',')
			}
			appendJSON(to, node.Content[i])
			to.WriteByte(':')
			appendJSON(to, node.Content[i+1])
		}
		to.WriteByte('}')
	case yaml.SequenceNode:
		to.WriteByte('[')
		for i, item := range node.Content {
			if i > 0 {
				to.WriteByte(',')
			}
			appendJSON(to, item)
		}
		to.WriteByte(']')
	default:
		if node.Tag != "!!str" { // a number or a boolean, which JSON writes alike
			to.WriteString(node.Value)
			return
		}
		encoder := json.NewEncoder(to)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(node.Value) // a string always encodes
	}
}
