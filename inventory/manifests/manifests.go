package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/wva-project/wva/inventory"
)

const (
	// problemsShown is how many problems of one file are listed; the rest are counted.
	problemsShown = 20
	// defaultNamespace is the namespace in which kubectl puts an object that names none.
	defaultNamespace = "default"
)

// content is the objects of a file of manifests.
type content struct {
	documents int // that are not blank
	manifests []manifest
	skipped   int // objects of kinds that are not read
	problems  []inventory.Problem
}

// manifest is one object of a file.
type manifest struct {
	key      inventory.Key
	location string // file and document
	objects  inventory.Objects
}

// parse reads a file of manifests, YAML or JSON, with any number of documents and lists. An
// unreadable document is a problem, and the rest is read all the same.
func parse(name string, data []byte) content {
	var c content
	if !utf8.Valid(data) {
		c.problems = []inventory.Problem{{Object: name, Text: "is not UTF-8", Remedy: "save it as UTF-8"}}
		return c
	}
	for _, document := range splitDocuments(data) {
		c.read(name, document)
	}
	if more := len(c.problems) - problemsShown; more > 0 {
		c.problems = append(c.problems[:problemsShown:problemsShown], inventory.Problem{
			Object: name, Text: fmt.Sprintf("has %d more problems", more), Remedy: "correct the first ones",
		})
	}
	return c
}

// read reads one document.
func (c *content) read(name string, document document) {
	where := fmt.Sprintf("%s, document %d (line %d)", name, document.number, document.line)
	value, err := document.decode()
	switch fields, isObject := value.(map[string]any); {
	case err != nil:
		c.documents++
		c.problems = append(c.problems, inventory.Problem{Object: where, Text: err.Error(), Remedy: inventory.DecodeRemedy})
	case value == nil: // comments only
	case !isObject:
		c.documents++
		c.problems = append(c.problems, inventory.Problem{Object: where, Text: "is not an object", Remedy: inventory.DecodeRemedy})
	default:
		c.documents++
		c.add(where, &unstructured.Unstructured{Object: fields})
	}
}

// add decodes an object, or each item of a list.
func (c *content) add(where string, u *unstructured.Unstructured) {
	if items, isList := u.Object["items"].([]any); isList && strings.HasSuffix(u.GetKind(), "List") {
		c.addItems(where, u, items)
		return
	}
	if u.GetAPIVersion() == "" || u.GetKind() == "" {
		c.problems = append(c.problems, inventory.Problem{
			Object: where, Text: "has no apiVersion and kind, so it is not a manifest", Remedy: inventory.DecodeRemedy + ", or move it to another directory",
		})
		return
	}
	if value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "namespace"); value != nil {
		if _, isText := value.(string); !isText {
			c.problems = append(c.problems, inventory.Problem{Object: where, Text: "its metadata.namespace is not text", Remedy: "write it in quotes"})
			return
		}
	}
	if u.GetNamespace() == "" && !isNode(u) {
		if err := unstructured.SetNestedField(u.Object, defaultNamespace, "metadata", "namespace"); err != nil {
			c.problems = append(c.problems, inventory.Problem{Object: where, Text: "its metadata is not an object", Remedy: inventory.DecodeRemedy})
			return
		}
	}
	c.problems = append(c.problems, quoteAnnotations(where, u)...)
	objects, err := inventory.Decode(u)
	switch {
	case err != nil:
		text := strings.TrimSuffix(err.Error(), "; "+inventory.DecodeRemedy)
		c.problems = append(c.problems, inventory.Problem{Object: where, Text: text, Remedy: inventory.DecodeRemedy})
	case objects.Len() == 0:
		c.skipped++
	default:
		c.manifests = append(c.manifests, manifest{inventory.KeyOf(u), where, objects})
	}
}

// addItems decodes the items of a list. Those of a typed list, such as a PodList, need not state
// their kind.
func (c *content) addItems(where string, list *unstructured.Unstructured, items []any) {
	for i, item := range items {
		at := fmt.Sprintf("%s, item %d", where, i+1)
		fields, isObject := item.(map[string]any)
		if !isObject {
			c.problems = append(c.problems, inventory.Problem{Object: at, Text: "is not an object", Remedy: inventory.DecodeRemedy})
			continue
		}
		u := &unstructured.Unstructured{Object: fields}
		if kind := strings.TrimSuffix(list.GetKind(), "List"); kind != "" && u.GetKind() == "" {
			u.SetKind(kind)
			u.SetAPIVersion(list.GetAPIVersion())
		}
		c.add(at, u)
	}
}

// quoteAnnotations makes annotations text that are not, for lack of quotes, and returns a problem
// that names them. The API server rejects such an object.
func quoteAnnotations(where string, u *unstructured.Unstructured) []inventory.Problem {
	const most = 3 // names in the text
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "annotations")
	annotations, _ := value.(map[string]any)
	var unquoted []string
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		switch value := annotations[name].(type) {
		case string:
			continue
		case nil:
			annotations[name] = ""
			continue
		case int64, float64, bool:
			annotations[name] = fmt.Sprint(value)
		default: // a list or an object
			annotations[name] = ""
		}
		unquoted = append(unquoted, name)
	}
	if len(unquoted) == 0 {
		return nil
	}
	more := ""
	if n := len(unquoted) - most; n > 0 {
		unquoted, more = unquoted[:most], fmt.Sprintf(" and %d more", n)
	}
	return []inventory.Problem{{
		Object: where, Text: fmt.Sprintf("%s has annotations that are not text: %s%s", inventory.KeyOf(u), strings.Join(unquoted, ", "), more),
		Remedy: "write their values in quotes",
	}}
}

func isNode(u *unstructured.Unstructured) bool {
	return u.GetKind() == "Node" && u.GetAPIVersion() == "v1"
}

// document is one document of a file.
type document struct {
	number int // from 1
	line   int // in the file, from 1
	data   []byte
}

// splitDocuments splits a file at the lines that begin or end a document ("---", "..."). Blank
// documents are left out.
func splitDocuments(data []byte) []document {
	var documents []document
	start, startLine, line := 0, 1, 0
	cut := func(end int) {
		if text := data[start:end]; len(bytes.TrimSpace(text)) > 0 {
			documents = append(documents, document{len(documents) + 1, startLine, text})
		}
	}
	for at := 0; at < len(data); {
		line++
		length := len(data) - at
		if end := bytes.IndexByte(data[at:], '\n'); end >= 0 {
			length = end + 1
		}
		if mark := boundary(data[at : at+length]); mark > 0 {
			cut(at)
			start, startLine = at+mark, line
		}
		at += length
	}
	cut(len(data))
	return documents
}

// boundary returns the length of the mark with which a line begins or ends a document; 0 if it has
// none.
func boundary(line []byte) int {
	const length = 3
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return 0
	}
	if rest := line[length:]; len(rest) > 0 && !bytes.ContainsAny(rest[:1], " \t\r\n") {
		return 0
	}
	return length
}

// decode returns the content of the document: an object, a list, a scalar, or nil for nothing.
func (d document) decode() (any, error) {
	data := d.data
	if !json.Valid(data) {
		if name, found := alias(data); found {
			return nil, fmt.Errorf("uses the YAML alias *%s: aliases are not read, since a few of them can expand to more than fits into memory", name)
		}
		if severalValues(data) {
			return nil, errors.New("has text after a JSON value, which would be ignored; separate objects by a line ---, or put them into a List")
		}
		converted, err := yaml.YAMLToJSONStrict(data)
		if err != nil {
			return nil, errors.New(d.relocate(err.Error()))
		}
		data = converted
	}
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	return value, nil
}

// severalValues reports whether text follows a first JSON value. YAML readers ignore it.
func severalValues(data []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(data))
	var first json.RawMessage
	if trimmed := bytes.TrimSpace(data); len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' || decoder.Decode(&first) != nil {
		return false
	}
	rest := bytes.TrimSpace(data[decoder.InputOffset():])
	return len(rest) > 0 && rest[0] != '#' && !bytes.HasPrefix(rest, []byte("---")) && !bytes.HasPrefix(rest, []byte("..."))
}

var lineNumber = regexp.MustCompile(`line (\d+)`)

// relocate makes a parser's line numbers those of the file, and its text one line.
func (d document) relocate(text string) string {
	text = lineNumber.ReplaceAllStringFunc(text, func(found string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(found, "line "))
		if err != nil {
			return found
		}
		return fmt.Sprintf("line %d", n+d.line-1)
	})
	return strings.Join(strings.Fields(text), " ")
}

// alias returns the name of a YAML alias: a word that follows a '*' and, as an anchor, a '&'. It
// may find one in plain text, and never misses one.
func alias(data []byte) (string, bool) {
	anchors := words(data, '&')
	if len(anchors) == 0 {
		return "", false
	}
	for name := range words(data, '*') {
		if anchors[name] {
			return name, true
		}
	}
	return "", false
}

// words returns the words that follow a mark, unless a letter or digit precedes the mark.
func words(data []byte, mark byte) map[string]bool {
	found := map[string]bool{}
	for at := 0; at < len(data); {
		next := bytes.IndexByte(data[at:], mark)
		if next < 0 {
			break
		}
		at += next + 1
		end := at
		for end < len(data) && isNameByte(data[end]) {
			end++
		}
		if end > at && (at < 2 || !isNameByte(data[at-2])) {
			found[string(data[at:end])] = true
		}
		at = max(at, end)
	}
	return found
}

// isNameByte reports whether a byte may occur in the name of an anchor.
func isNameByte(b byte) bool {
	return b == '_' || b == '-' || b >= '0' && b <= '9' || b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z'
}
