package config

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// redacted stands for a secret in everything that is shown.
const redacted = "<redacted>"

// binding joins a setting with its field of the Config.
type binding interface {
	kind() string
	allowed() string
	secret() bool
	// set reads what was given into the field. Where it complains, the field is left as it was.
	set(c *Config, given *yaml.Node) []complaint
	// node returns the field as it would be written in the file.
	node(c *Config) *yaml.Node
	copy(from, to *Config)
	same(a, b *Config) bool
}

// complaint is what is wrong with a value.
type complaint struct {
	node            *yaml.Node // what is complained of
	problem, remedy string
}

// scalar binds a setting of one value.
type scalar[T comparable] struct {
	shape shape[T]
	field func(*Config) *T
}

func bind[T comparable](s shape[T], field func(*Config) *T) binding {
	return scalar[T]{shape: s, field: field}
}

func (s scalar[T]) kind() string    { return s.shape.kind }
func (s scalar[T]) allowed() string { return s.shape.allowed }
func (s scalar[T]) secret() bool    { return s.shape.secret }

func (s scalar[T]) set(c *Config, given *yaml.Node) []complaint {
	remedy := "write " + s.shape.allowed
	if given.Kind != yaml.ScalarNode {
		return []complaint{{given, "is a " + kindOf(given), remedy}}
	}
	if hasCredentials(given.Value) && !s.shape.secret {
		return []complaint{{given, "holds a user name or password, which would be shown", "give credentials as a bearer token file or a client certificate"}}
	}
	if !printable(given.Value) {
		return []complaint{{given, "holds characters that cannot be printed", remedy}}
	}
	value, wrong := s.shape.parse(given.Value)
	if wrong != "" {
		if !s.shape.secret && given.Value != "" {
			wrong = quoted(given.Value) + " " + wrong
		}
		return []complaint{{given, wrong, remedy}}
	}
	*s.field(c) = value
	return nil
}

func (s scalar[T]) node(c *Config) *yaml.Node {
	text := s.shape.render(*s.field(c))
	if s.shape.secret && text != "" {
		text = redacted
	}
	if s.shape.number {
		return &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	}
	return textNode(text)
}

func (s scalar[T]) copy(from, to *Config)  { *s.field(to) = *s.field(from) }
func (s scalar[T]) same(a, b *Config) bool { return *s.field(a) == *s.field(b) }
func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}
func plainNode(tag, text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

// list binds a setting of several values.
type list[T comparable] struct {
	name    string // of the type
	entries string // what may be written
	field   func(*Config) *[]T
	read    func(*yaml.Node) (T, []complaint)
	write   func(T) *yaml.Node
	// identity returns what only one entry may have.
	identity func(T) string
	// split turns a text of the environment or a flag into a sequence; nil: the text is YAML.
	split func(text string) *yaml.Node
}

func (l list[T]) kind() string    { return l.name }
func (l list[T]) allowed() string { return l.entries }
func (l list[T]) secret() bool    { return false }

func (l list[T]) set(c *Config, given *yaml.Node) []complaint {
	if given.Kind == yaml.ScalarNode && given.Line == 0 { // not of a file
		sequence, wrong := l.sequence(given.Value)
		if wrong != "" {
			return []complaint{{given, wrong, "write " + l.entries}}
		}
		given = sequence
	}
	if given.Kind != yaml.SequenceNode {
		return []complaint{{given, "is a " + kindOf(given), "write " + l.entries}}
	}
	var complaints []complaint
	entries := make([]T, 0, len(given.Content))
	seen := make(map[string]bool)
	for _, item := range given.Content {
		entry, wrong := l.read(item)
		complaints = append(complaints, wrong...)
		if len(wrong) > 0 {
			continue
		}
		if id := l.identity(entry); seen[id] {
			complaints = append(complaints, complaint{item, quoted(id) + " is there twice", "remove one of the two"})
		} else {
			seen[id] = true
		}
		entries = append(entries, entry)
	}
	if len(complaints) == 0 {
		*l.field(c) = entries
	}
	return complaints
}

func (l list[T]) sequence(text string) (*yaml.Node, string) {
	if l.split != nil {
		return l.split(text), ""
	}
	root, wrong := parseYAML([]byte(text))
	switch {
	case wrong != nil:
		return nil, wrong.problem
	case root == nil:
		return &yaml.Node{Kind: yaml.SequenceNode}, ""
	}
	return root, ""
}

func (l list[T]) node(c *Config) *yaml.Node {
	sequence := &yaml.Node{Kind: yaml.SequenceNode}
	for _, entry := range *l.field(c) {
		sequence.Content = append(sequence.Content, l.write(entry))
	}
	if len(sequence.Content) == 0 {
		sequence.Style = yaml.FlowStyle
	}
	return sequence
}

func (l list[T]) copy(from, to *Config)  { *l.field(to) = slices.Clone(*l.field(from)) }
func (l list[T]) same(a, b *Config) bool { return slices.Equal(*l.field(a), *l.field(b)) }

// kindOf names what a YAML node is.
func kindOf(node *yaml.Node) string {
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

// printable reports whether a text is what a person can have meant to write.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// cause returns why a file could not be read, without its path.
func cause(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return strings.TrimSpace(err.Error())
}
