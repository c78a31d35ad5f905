package manifests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
