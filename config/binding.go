package config

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// redacted replaces a secret wherever a configuration is shown.
const redacted = "<redacted>"

// binding connects a setting with its field of the Config.
type binding interface {
	typeName() string
	allowed() string
	secret() bool
	// set parses a value into the field. If there are problems, the field is left as it was.
	set(c *Config, value *yaml.Node) []problem
	// node returns the field as a configuration file would set it.
	node(c *Config) *yaml.Node
	copy(from, to *Config)
	same(a, b *Config) bool
	// rowIdentity says how ConfigMaps merge rows with the value below them.
	rowIdentity() rowIdentity
}

// problem is one thing that is wrong with a value, without its setting and origin.
type problem struct {
	node         *yaml.Node // the part of the value that is wrong
	text, remedy string
}

// scalar is the binding of a setting of one value.
type scalar[T comparable] struct {
	valueType valueType[T]
	field     func(*Config) *T
}

func bind[T comparable](t valueType[T], field func(*Config) *T) binding {
	return scalar[T]{valueType: t, field: field}
}

func (s scalar[T]) typeName() string { return s.valueType.name }
func (s scalar[T]) allowed() string  { return s.valueType.allowed }
func (s scalar[T]) secret() bool     { return s.valueType.secret }

func (s scalar[T]) set(c *Config, value *yaml.Node) []problem {
	remedy := "write " + s.valueType.allowed
	if value.Kind != yaml.ScalarNode {
		return []problem{{value, "is a " + nodeType(value), remedy}}
	}
	if hasCredentials(value.Value) && !s.valueType.secret {
		return []problem{{
			value, "contains a user name or password, which would be shown",
			"give credentials as a bearer token file or a client certificate",
		}}
	}
	if !printable(value.Value) {
		return []problem{{value, "contains characters that cannot be printed", remedy}}
	}
	parsed, wrong := s.valueType.parse(value.Value)
	if wrong != "" {
		if !s.valueType.secret && value.Value != "" {
			wrong = quoted(value.Value) + " " + wrong
		}
		return []problem{{value, wrong, remedy}}
	}
	*s.field(c) = parsed
	return nil
}

func (s scalar[T]) node(c *Config) *yaml.Node {
	text := s.valueType.format(*s.field(c))
	if s.valueType.secret && text != "" {
		text = redacted
	}
	if s.valueType.number {
		return plainNode("", text)
	}
	return textNode(text)
}

func (s scalar[T]) copy(from, to *Config)  { *s.field(to) = *s.field(from) }
func (s scalar[T]) same(a, b *Config) bool { return *s.field(a) == *s.field(b) }

func (s scalar[T]) rowIdentity() rowIdentity { return rowIdentity{} }

func textNode(text string) *yaml.Node { return plainNode("!!str", text) }

func plainNode(tag, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

// list is the binding of a setting of several rows.
type list[T any] struct {
	name     string // of the type
	accepted string // how to write it, as the end of "write ..."
	field    func(*Config) *[]T
	read     func(*yaml.Node) (T, []problem)
	write    func(T) *yaml.Node
	// identity is unique among the rows.
	identity func(T) string
	// split turns the text of a variable or flag into a sequence; nil: the text is YAML.
	split func(text string) *yaml.Node
	// merging says how ConfigMaps merge rows; the zero value: a list replaces the one below it.
	merging rowIdentity
}

func (l list[T]) typeName() string { return l.name }
func (l list[T]) allowed() string  { return l.accepted }
func (l list[T]) secret() bool     { return false }

func (l list[T]) set(c *Config, value *yaml.Node) []problem {
	if value.Kind == yaml.ScalarNode && value.Line == 0 { // of a variable, a flag or a default
		sequence, wrong := l.sequence(value.Value)
		if wrong != "" {
			return []problem{{value, wrong, "write " + l.accepted}}
		}
		value = sequence
	}
	if value.Kind != yaml.SequenceNode {
		return []problem{{value, "is a " + nodeType(value), "write " + l.accepted}}
	}
	var problems []problem
	rows := make([]T, 0, len(value.Content))
	seen := make(map[string]bool)
	for _, item := range value.Content {
		row, wrong := l.read(item)
		problems = append(problems, wrong...)
		if len(wrong) > 0 {
			continue
		}
		if id := l.identity(row); seen[id] {
			problems = append(problems, problem{item, quoted(id) + " is listed twice", "remove one of the two"})
		} else {
			seen[id] = true
		}
		rows = append(rows, row)
	}
	if len(problems) == 0 {
		*l.field(c) = rows
	}
	return problems
}

func (l list[T]) sequence(text string) (*yaml.Node, string) {
	if l.split != nil {
		return l.split(text), ""
	}
	root, wrong := parseYAML([]byte(text))
	switch {
	case wrong != nil:
		return nil, wrong.text
	case root == nil:
		return &yaml.Node{Kind: yaml.SequenceNode}, ""
	}
	return root, ""
}

func (l list[T]) node(c *Config) *yaml.Node {
	sequence := &yaml.Node{Kind: yaml.SequenceNode}
	for _, row := range *l.field(c) {
		sequence.Content = append(sequence.Content, l.write(row))
	}
	if len(sequence.Content) == 0 {
		sequence.Style = yaml.FlowStyle
	}
	return sequence
}

func (l list[T]) copy(from, to *Config)    { *l.field(to) = slices.Clone(*l.field(from)) }
func (l list[T]) rowIdentity() rowIdentity { return l.merging }

func (l list[T]) same(a, b *Config) bool { return reflect.DeepEqual(*l.field(a), *l.field(b)) }

// nodeType returns the name of a YAML node's type for people.
func nodeType(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "mapping"
	case yaml.SequenceNode:
		return "list"
	case yaml.AliasNode:
		return "YAML alias"
	default:
		return "single value"
	}
}

// printable reports whether a text is valid and has no control characters.
func printable(text string) bool {
	return utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// cause returns why a file could not be read, without its path.
func cause(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return strings.TrimSpace(err.Error())
}
