package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/wva-project/wva/fleet"
)

// file is the content of a configuration file, or of a key of a ConfigMap, whose path is the name
// of both.
type file struct {
	path   string
	data   []byte
	source Source // empty: SourceFile
	// content keeps the values of a document that is read several times; nil: nothing is kept.
	content *content
}

// content is the values of a document that was read, and its validation errors.
type content struct {
	isRead bool
	values map[string]*yaml.Node // by key
	errs   []error
}

// mostErrors is the most validation errors of a key of a ConfigMap, or of a setting in one, that
// are listed: a tenant may write thousands.
const mostErrors = 20

// The texts for further ones.
const (
	furtherErrors = "has further errors, which are not listed"
	correctThese  = "correct the listed ones first"
)

func (f file) origin(line int) Origin {
	return Origin{Source: cmp.Or(f.source, SourceFile), Name: f.path, Line: line}
}

// fileReader collects the values of a file and its validation errors.
type fileReader struct {
	file     file
	settings []Setting
	scope    Scope
	values   map[string]*yaml.Node // by key
	errs     []error
}

// read returns the values of the file, by key. A key without a value sets nothing. A setting of a
// smaller scope is an error. Neither the map nor its nodes may be changed.
func (f file) read(settings []Setting, scope Scope) (map[string]*yaml.Node, []error) {
	if f.content != nil && f.content.isRead {
		return f.content.values, slices.Clip(f.content.errs)
	}
	r := &fileReader{file: f, settings: settings, scope: scope, values: make(map[string]*yaml.Node)}
	root, wrong := parseYAML(f.data)
	switch {
	case wrong != nil:
		r.reject("", *wrong)
	case root != nil:
		r.section("", root)
	}
	if f.content != nil {
		*f.content = content{isRead: true, values: r.values, errs: r.errs}
	}
	return r.values, slices.Clip(r.errs)
}

// section reads the mapping below a prefix, which is empty or ends with a dot.
func (r *fileReader) section(prefix string, node *yaml.Node) {
	name := strings.TrimSuffix(prefix, ".")
	if isNull(node) {
		return
	}
	if node.Kind != yaml.MappingNode {
		r.reject(name, problem{node, "is a " + nodeType(node), "write settings as key: value"})
		return
	}
	pairs, wrong := pairsOf(node)
	for _, p := range wrong {
		r.reject(name, p)
	}
	for _, p := range pairs {
		if r.isFull() {
			return
		}
		key := prefix + p.key.Value
		dotted := strings.Contains(p.key.Value, ".")
		switch {
		case !dotted && r.isSetting(key):
			r.value(key, p)
		case !dotted && r.isSection(key+"."):
			r.section(key+".", p.value)
		default:
			r.reject(name, problem{p.key, "unknown key " + quoted(p.key.Value), r.suggest(prefix, p.key.Value)})
		}
	}
}

// value takes the value of a setting.
func (r *fileReader) value(key string, p pair) {
	at := slices.IndexFunc(r.settings, func(s Setting) bool { return s.Key == key })
	switch {
	case isNull(p.value):
	case r.settings[at].Scope >= r.scope:
		r.values[key] = p.value
	case r.settings[at].Scope == ScopeGlobal:
		r.reject(key, problem{p.key, "is not a setting of a namespace", "let the administrator set it in the server's namespace"})
	default:
		r.reject(key, problem{p.key, "cannot be set by a ConfigMap", "set it in the configuration file"})
	}
}

// isFull reports whether a document has so many errors that no further ones are searched.
func (r *fileReader) isFull() bool {
	return r.scope != ScopeServer && len(r.errs) >= mostErrors
}

func (r *fileReader) reject(key string, p problem) {
	if r.isFull() {
		return
	}
	if r.scope != ScopeServer && len(r.errs) == mostErrors-1 {
		p.text, p.remedy = furtherErrors, correctThese
	}
	r.errs = append(r.errs, &ValidationError{
		Key: key, Origin: r.file.origin(p.node.Line), Problem: p.text, Remedy: p.remedy,
	})
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

// suggest returns the remedy for an unknown key: a key of the section with a similar name, else a
// setting of that name in another section.
func (r *fileReader) suggest(prefix, key string) string {
	var siblings []string
	for _, s := range r.settings {
		if rest, below := strings.CutPrefix(s.Key, prefix); below {
			sibling, _, _ := strings.Cut(rest, ".")
			siblings = append(siblings, sibling)
		}
	}
	if near, found := fleet.Nearest(key, siblings); found {
		return "did you mean " + near + "?"
	}
	for _, s := range r.settings {
		section, last := splitKey(s.Key)
		if section != "" && (fleet.FoldName(last) == fleet.FoldName(key) || s.Key == key || s.Flag() == key || s.Env() == key) {
			return fmt.Sprintf("did you mean %s below %s?", last, section)
		}
	}
	return "remove it; `wva --help` lists all settings"
}

func splitKey(key string) (section, last string) {
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		return key[:i], key[i+1:]
	}
	return "", key
}

// pair is a key of a mapping with its value.
type pair struct{ key, value *yaml.Node }

// pairsOf returns the keys of a mapping with their values, in their order, each key once.
func pairsOf(node *yaml.Node) (pairs []pair, problems []problem) {
	lines := make(map[string]int)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			problems = append(problems, problem{key, "has a " + nodeType(key) + " as a key", "write settings as key: value"})
			continue
		}
		if first, twice := lines[key.Value]; twice {
			text := quoted(key.Value) + " is given twice"
			if first > 0 {
				text += fmt.Sprintf(", first in line %d", first)
			}
			problems = append(problems, problem{key, text, "remove one of the two"})
			continue
		}
		lines[key.Value] = key.Line
		pairs = append(pairs, pair{key, value})
	}
	return pairs, problems
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }

// parseYAML returns the root of the only document; nil if the text has none.
func parseYAML(text []byte) (root *yaml.Node, wrong *problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxProblem(err)
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, &problem{&more, "contains more than one YAML document", "keep one"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxProblem(err)
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) == 0 || isNull(document.Content[0]) {
		return nil, nil
	}
	return document.Content[0], nil
}

var lineOfError = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxProblem returns the message of the parser without quotations, which may contain a secret.
func syntaxProblem(err error) *problem {
	text := err.Error()
	at := &yaml.Node{}
	if found := lineOfError.FindStringSubmatch(text); found != nil {
		at.Line, _ = strconv.Atoi(found[1])
		text = text[len(found[0]):]
	}
	if quote := strings.IndexAny(text, "`'\""); quote >= 0 {
		text = text[:quote]
	}
	return &problem{at, "is not YAML: " + strings.TrimSpace(text), "correct the syntax; indent with spaces"}
}
