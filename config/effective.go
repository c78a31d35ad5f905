package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Effective returns the configuration as a file would set it, secrets redacted: YAML in the order of the table. A comment
// says how many profiles ship; they are not listed.
func (c *Config) Effective() string {
	return encode(c.tree(func(s Setting, value *yaml.Node) { value.LineComment = s.noteOf(c) }))
}

// EffectiveWithOrigins is Effective, with a comment at each setting that says where its value came from.
func (c *Config) EffectiveWithOrigins() string {
	return encode(c.tree(func(s Setting, value *yaml.Node) {
		value.LineComment = c.origins[s.Key].String()
		if note := s.noteOf(c); note != "" {
			value.LineComment += "; " + note
		}
	}))
}

func (s Setting) noteOf(c *Config) string {
	if s.note == nil {
		return ""
	}
	return s.note(c)
}

// EffectiveJSON returns what Effective returns, as JSON.
func (c *Config) EffectiveJSON() string { return encodeJSON(c.tree(func(Setting, *yaml.Node) {})) }

// EffectiveJSONWithOrigins returns an object for each setting, by key, with the fields value and origin.
func (c *Config) EffectiveJSONWithOrigins() string {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range Settings() {
		root.Content = append(root.Content, textNode(s.Key), &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
			textNode("value"), s.binding.node(c), textNode("origin"), textNode(c.origins[s.Key].String()),
		}})
	}
	return encodeJSON(root)
}

// tree returns the configuration as YAML nodes; each value is shown to the visitor.
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
			key.LineComment, value.LineComment = value.LineComment, "" // at the key, above the entries
		}
		within.Content = append(within.Content, key, value)
	}
	return root
}

// child returns the mapping below a key, which it adds where it is not there.
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
