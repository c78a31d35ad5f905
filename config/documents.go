package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// documents are the values of the configuration file and of the ConfigMaps over it.
type documents struct {
	settings []Setting
	values   map[string]*yaml.Node   // by key
	from     map[*yaml.Node]file     // the document of a node; none: of a default
	beneath  map[string][]*yaml.Node // by key: the lists whose rows were merged with the value
}

func newDocuments(settings []Setting) *documents {
	return &documents{
		settings: settings, values: make(map[string]*yaml.Node),
		from: make(map[*yaml.Node]file), beneath: make(map[string][]*yaml.Node),
	}
}

// add puts a document over those that were added before. A value replaces the one below it, and a
// list of rows is merged with the one below it, row by row and field by field. scope is that which
// the settings of the document must have. Each value of a ConfigMap is validated, even if another
// one will replace it: that one may be deleted.
func (d *documents) add(f file, scope Scope) []error {
	values, errs := f.read(d.settings, scope)
	for _, s := range d.settings {
		above, given := values[s.Key]
		if !given {
			continue
		}
		if wrong := d.tooLong(s, above, f, scope); wrong != nil {
			errs = append(errs, wrong)
			continue
		}
		d.note(above, f)
		identity := s.binding.rowIdentity()
		below, found := d.values[s.Key]
		if !found {
			below = identity.defaultRows(s, scope)
		}
		d.values[s.Key] = above
		if len(identity.fields) > 0 && below != nil && below.Kind == yaml.SequenceNode && above.Kind == yaml.SequenceNode {
			d.values[s.Key] = d.merge(below, above, identity)
			if wrong := d.tooLong(s, d.values[s.Key], f, scope); wrong != nil {
				d.values[s.Key], errs = below, append(errs, wrong)
				continue
			}
			if found {
				d.beneath[s.Key] = append(d.beneath[s.Key], below)
			}
		}
		if scope != ScopeServer {
			errs = append(errs, d.validate(s, new(Config))...)
		}
	}
	return errs
}

// tooLong returns the error of a list of a tenant that has too many rows, which is not used.
func (d *documents) tooLong(s Setting, value *yaml.Node, f file, scope Scope) error {
	rows := len(value.Content)
	if scope != ScopeNamespace || value.Kind != yaml.SequenceNode || rows <= mostRows {
		return nil
	}
	return &ValidationError{
		Key: s.Key, Origin: f.origin(value.Line), Problem: fmt.Sprintf("has %d rows", rows),
		Remedy: fmt.Sprintf("write at most %d in a namespace", mostRows),
	}
}

// validate sets the value of a setting, and returns its validation errors.
func (d *documents) validate(s Setting, into *Config) (errs []error) {
	value := d.values[s.Key]
	for i, p := range s.binding.set(into, value) {
		if i >= mostErrors {
			return errs
		}
		if i == mostErrors-1 {
			p.text, p.remedy = furtherErrors, correctThese
		}
		at := cmp.Or(d.origin(p.node), d.origin(value))
		errs = append(errs, &ValidationError{Key: s.Key, Origin: at, Problem: p.text, Remedy: p.remedy})
	}
	return errs
}

// defaultRows returns the rows of a default that global ConfigMaps merge with. A file replaces
// them, and the settings of a tenant begin with none.
func (i rowIdentity) defaultRows(s Setting, scope Scope) *yaml.Node {
	if scope != ScopeGlobal || len(i.fields) == 0 || s.Default == "" {
		return nil
	}
	rows, wrong := parseYAML([]byte(s.Default))
	if wrong != nil {
		return nil
	}
	return rows
}

// note records the document of a value and of all its parts.
func (d *documents) note(node *yaml.Node, f file) {
	d.from[node] = f
	for _, part := range node.Content {
		d.note(part, f)
	}
}

// origin returns the origin of a node; the zero value if it is of no document.
func (d *documents) origin(node *yaml.Node) Origin {
	f, found := d.from[node]
	if !found {
		return Origin{}
	}
	return f.origin(node.Line)
}

// beneathOf returns the origins of the lists that were merged with the value of a key, the nearest
// first.
func (d *documents) beneathOf(key string) (origins []Origin) {
	for _, node := range slices.Backward(d.beneath[key]) {
		origins = append(origins, d.origin(node))
	}
	return origins
}

// rowIdentity is how the rows of a list are merged. The zero value: a list replaces the other.
type rowIdentity struct {
	fields []string // rows with the same values of these fields are one row
	// first is true if the first row that fits counts, so that rows of the upper list come first
	first bool
}

// of returns the values of a row's identifying fields as one text; empty if it is no row.
func (i rowIdentity) of(row *yaml.Node) string {
	if row.Kind != yaml.MappingNode {
		return ""
	}
	values := make([]string, len(i.fields))
	for n, field := range i.fields {
		values[n] = "*" // as a row without it matches
		for at := 0; at+1 < len(row.Content); at += 2 {
			if row.Content[at].Value == field && row.Content[at+1].Value != "" {
				values[n] = row.Content[at+1].Value
			}
		}
	}
	return strings.Join(values, "\x00")
}

// merge returns the rows of two lists. A row of both has the fields of both, and the place of the
// upper one.
func (d *documents) merge(below, above *yaml.Node, identity rowIdentity) *yaml.Node {
	byIdentity := make(map[string]*yaml.Node, len(below.Content))
	for _, row := range below.Content {
		byIdentity[identity.of(row)] = row
	}
	upper := make([]*yaml.Node, 0, len(above.Content))
	replaced := make(map[*yaml.Node]bool)
	for _, row := range above.Content {
		if other, both := byIdentity[identity.of(row)]; both && row.Kind == yaml.MappingNode && other.Kind == yaml.MappingNode {
			replaced[other] = true
			row = d.mergeRow(other, row)
		}
		upper = append(upper, row)
	}
	lower := slices.DeleteFunc(slices.Clone(below.Content), func(row *yaml.Node) bool { return replaced[row] })
	rows := &yaml.Node{Kind: yaml.SequenceNode, Line: above.Line, Content: slices.Concat(lower, upper)}
	if identity.first {
		rows.Content = slices.Concat(upper, lower)
	}
	d.from[rows] = d.from[above]
	return rows
}

// mergeRow returns the fields of two rows; those of the upper one take precedence. One without a
// value sets nothing.
func (d *documents) mergeRow(below, above *yaml.Node) *yaml.Node {
	row := &yaml.Node{Kind: yaml.MappingNode, Line: above.Line}
	given, beneath := make(map[string]bool), make(map[string]bool)
	for at := 0; at+1 < len(above.Content); at += 2 {
		if !isNull(above.Content[at+1]) {
			given[above.Content[at].Value] = true
		}
	}
	for at := 0; at+1 < len(below.Content); at += 2 {
		if !given[below.Content[at].Value] {
			row.Content = append(row.Content, below.Content[at:at+2]...)
			beneath[below.Content[at].Value] = true
		}
	}
	for at := 0; at+1 < len(above.Content); at += 2 {
		if !beneath[above.Content[at].Value] {
			row.Content = append(row.Content, above.Content[at:at+2]...)
		}
	}
	d.from[row] = d.from[above]
	return row
}
