package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mostParts is the most keys of all ConfigMaps of a namespace, so that no tenant makes a change of
// its configuration expensive.
const mostParts = 16

// mostOffers is the most keys of a namespace that are looked at: a few beyond those that count are
// rejected by name, and nothing is said of the others.
const mostOffers = mostParts + 4

// offer is a key of a ConfigMap as it was found.
type offer struct {
	file
	id    Rejection // without errors
	wrong error     // why it cannot be read at all
	// isExcess is true if the namespace has too many keys before it: no text of it is used.
	isExcess bool
}

// offersOf returns the keys of the ConfigMaps by namespace, in the order of names and keys, in
// which later ones take precedence, and not the text of those that cannot count.
func offersOf(found []Map) map[string][]offer {
	offered := make(map[string][]offer)
	byName := func(a, b Map) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	for _, m := range slices.SortedFunc(slices.Values(found), byName) {
		add := func(key, text string, wrong error) {
			id := Rejection{Namespace: m.Namespace, Name: m.Name, Key: key}
			switch before := len(offered[m.Namespace]); {
			case before >= mostOffers:
				return
			case before >= mostParts:
				text = ""
			}
			offered[m.Namespace] = append(offered[m.Namespace], offer{
				file: file{path: id.path(), data: []byte(text), source: SourceConfigMap, content: new(content)}, id: id, wrong: wrong,
			})
		}
		if m.TooLarge {
			add("", "", errTooLarge)
		}
		if len(offered[m.Namespace]) >= mostOffers {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(m.Data)) {
			add(key, m.Data[key], nil)
		}
	}
	return offered
}

var errTooLarge = errors.New("the ConfigMap is too large; keep it below 64 KiB")

// sameOffers reports whether two lists have the same documents.
func sameOffers(a, b []offer) bool {
	return slices.EqualFunc(a, b, func(x, y offer) bool { return x.equal(y.file) && x.id == y.id && errors.Is(x.wrong, y.wrong) })
}

// accept returns the documents that are valid together, in their order. Of each it is the new text
// or, if that is invalid, the one that was accepted before: an invalid one changes nothing. check
// returns the errors of documents together; one that is invalid by itself is not tried with others.
func accept(before []file, offered []offer, scope Scope, check func([]file) []error) (accepted []file, rejections []Rejection) {
	offered = limited(offered, before)
	for i, o := range offered {
		if o.wrong == nil {
			_, errs := o.read(Settings(), scope)
			offered[i].wrong = errors.Join(errs...)
		}
	}
	chosen := make([]*file, len(offered))
	errs := make([]error, len(offered))
	// choose tries a text, beside those that were chosen.
	choose := func(i int, f file) {
		was := chosen[i]
		chosen[i] = &f
		if wrong := check(present(chosen)); len(wrong) > 0 {
			chosen[i], errs[i] = was, errors.Join(wrong...)
		}
	}
	for i, o := range offered { // those in use first: they are valid together, unless one is gone
		if at := slices.IndexFunc(before, func(f file) bool { return f.path == o.path }); at >= 0 && !o.isExcess {
			chosen[i] = &before[at]
		}
	}
	if len(before) > 0 && len(check(present(chosen))) > 0 {
		kept := slices.Clone(chosen)
		clear(chosen)
		for i, f := range kept {
			if f != nil {
				choose(i, *f)
			}
		}
	}
	for range 2 { // a document may be valid with one that comes later only
		for i, o := range offered {
			if o.wrong == nil && (chosen[i] == nil || !chosen[i].equal(o.file)) {
				choose(i, o.file)
			}
		}
	}
	for i, o := range offered {
		if chosen[i] == nil || !chosen[i].equal(o.file) || o.wrong != nil {
			o.id.Errors, o.id.Kept = cmp.Or(o.wrong, errs[i]), o.id.Kept || chosen[i] != nil
			rejections = append(rejections, o.id)
		}
	}
	return present(chosen), rejections
}

// limited returns the documents with the keys in use of ConfigMaps that have become too large, and
// marks those beyond the most that a namespace may have.
func limited(offered []offer, before []file) (all []offer) {
	for _, o := range offered {
		if o.id.Key != "" {
			all = append(all, o)
			continue
		}
		at := len(all)
		for _, f := range before {
			if name, key, _ := strings.Cut(f.path, keySeparator); name == o.id.path() {
				o.id.Kept = true
				all = append(all, offer{file: f, id: Rejection{Namespace: o.id.Namespace, Name: o.id.Name, Key: key}})
			}
		}
		all = slices.Insert(all, at, o)
	}
	for i := range all {
		if i >= mostParts {
			all[i].isExcess, all[i].id.Kept = true, false
			all[i].wrong = fmt.Errorf("the ConfigMaps of the namespace have more than %d keys, and the first by name count; join some", mostParts)
		}
	}
	return all
}

// present returns the documents that are there.
func present(chosen []*file) (files []file) {
	for _, f := range chosen {
		if f != nil {
			files = append(files, *f)
		}
	}
	return files
}

func (f file) equal(other file) bool {
	return f.path == other.path && string(f.data) == string(other.data)
}

// keySeparator separates the name of a ConfigMap from its key in the path of a document.
const keySeparator = ", key "

func (r Rejection) path() string {
	if r.Key == "" {
		return r.Namespace + "/" + r.Name
	}
	return r.Namespace + "/" + r.Name + keySeparator + r.Key
}
