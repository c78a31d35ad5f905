package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file is a configuration file as it was read.
type file struct {
	path string
	data []byte
}

func (f file) origin(line int) Origin { return Origin{Source: SourceFile, Name: f.path, Line: line} }

// fileReader collects what a file sets, and what is wrong with it.
type fileReader struct {
	file     file
	settings []Setting
	values   map[string]*yaml.Node // by key
	faults   []error
}

// read returns what the file sets, by key. A key without a value sets nothing.
func (f file) read(settings []Setting) (map[string]*yaml.Node, []error) {
	r := &fileReader{file: f, settings: settings, values: make(map[string]*yaml.Node)}
	root, wrong := parseYAML(f.data)
	switch {
	case wrong != nil:
		r.complain("", *wrong)
	case root != nil:
		r.section("", root)
	}
	return r.values, r.faults
}

// section reads the mapping below a prefix, which is empty or ends with a dot.
func (r *fileReader) section(prefix string, node *yaml.Node) {
	name := strings.TrimSuffix(prefix, ".")
	if isNull(node) {
		return
	}
	if node.Kind != yaml.MappingNode {
		r.complain(name, complaint{node, "is a " + kindOf(node), "write settings as key: value"})
		return
	}
	entries, wrong := entriesOf(node)
	for _, c := range wrong {
		r.complain(name, c)
	}
	for _, entry := range entries {
		key := prefix + entry.key.Value
		dotted := strings.Contains(entry.key.Value, ".")
		switch {
		case !dotted && r.isSetting(key):
			if !isNull(entry.value) {
				r.values[key] = entry.value
			}
		case !dotted && r.isSection(key+"."):
			r.section(key+".", entry.value)
		default:
			r.complain(name, complaint{entry.key, "unknown key " + quoted(entry.key.Value), r.suggest(prefix, entry.key.Value)})
		}
	}
}

func (r *fileReader) complain(key string, c complaint) {
	r.faults = append(r.faults, &FaultError{Key: key, Origin: r.file.origin(c.node.Line), Problem: c.problem, Remedy: c.remedy})
}

func (r *fileReader) isSetting(key string) bool {
	for _, s := range r.settings {
		if s.Key == key {
			return true
		}
	}
	return false
}

func (r *fileReader) isSection(prefix string) bool {
	for _, s := range r.settings {
		if strings.HasPrefix(s.Key, prefix) {
			return true
		}
	}
	return false
}

// suggest returns the remedy for an unknown key: a sibling of nearly the same name, else a setting that stands elsewhere.
func (r *fileReader) suggest(prefix, key string) string {
	var siblings []string
	for _, s := range r.settings {
		if rest, below := strings.CutPrefix(s.Key, prefix); below {
			sibling, _, _ := strings.Cut(rest, ".")
			siblings = append(siblings, sibling)
		}
	}
	if near, found := nearest(key, siblings); found {
		return "did you mean " + near + "?"
	}
	for _, s := range r.settings {
		section, last := splitKey(s.Key)
		if section != "" && (fold(last) == fold(key) || s.Key == key || s.Flag() == key || s.Env() == key) {
			return fmt.Sprintf("did you mean %s below %s?", last, section)
		}
	}
	return "remove it; `wva --help` lists what there is"
}

func splitKey(key string) (section, last string) {
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		return key[:i], key[i+1:]
	}
	return "", key
}

// entry is a key of a mapping with its value.
type entry struct{ key, value *yaml.Node }

// entriesOf returns the entries of a mapping in their order, each key once.
func entriesOf(node *yaml.Node) (entries []entry, complaints []complaint) {
	lines := make(map[string]int)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			complaints = append(complaints, complaint{key, "has a " + kindOf(key) + " as a key", "write settings as key: value"})
			continue
		}
		if first, twice := lines[key.Value]; twice {
			problem := quoted(key.Value) + " is given twice"
			if first > 0 {
				problem += fmt.Sprintf(", first in line %d", first)
			}
			complaints = append(complaints, complaint{key, problem, "remove one of the two"})
			continue
		}
		lines[key.Value] = key.Line
		entries = append(entries, entry{key, value})
	}
	return entries, complaints
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }

// parseYAML returns the root of the one document; nil where the text holds none.
func parseYAML(text []byte) (root *yaml.Node, wrong *complaint) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxComplaint(err)
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, &complaint{&more, "holds more than one YAML document", "keep one"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxComplaint(err)
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) == 0 || isNull(document.Content[0]) {
		return nil, nil
	}
	return document.Content[0], nil
}

var lineOfError = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxComplaint keeps what the parser says, without what it quotes: it may have quoted a secret.
func syntaxComplaint(err error) *complaint {
	text := err.Error()
	at := &yaml.Node{}
	if found := lineOfError.FindStringSubmatch(text); found != nil {
		at.Line, _ = strconv.Atoi(found[1])
		text = text[len(found[0]):]
	}
	if quote := strings.IndexAny(text, "`'\""); quote >= 0 {
		text = text[:quote]
	}
	return &complaint{at, "is not YAML: " + strings.TrimSpace(text), "correct the syntax; indent with spaces"}
}
