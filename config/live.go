package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// ConfigMap is a ConfigMap with settings. Each key of its data is a document in the form of the
// configuration file, and is used as a whole or not at all.
type ConfigMap struct {
	Namespace, Name string
	Data            map[string]string
	// TooLarge is true if the data are larger than is read; Data is then empty.
	TooLarge bool
}

// mostParts is the most keys of all ConfigMaps of a namespace, so that no tenant makes a change of
// its configuration expensive.
const mostParts = 16

// Rejection is a key of a ConfigMap that is not used.
type Rejection struct {
	Namespace, Name string
	Key             string // empty: the whole ConfigMap
	// Errors are all validation errors.
	Errors error
	// Kept is true if the last valid text of the key stays in use.
	Kept bool
}

// String returns the rejection as one line: key, errors, the text in use.
func (r Rejection) String() string {
	text := strings.ReplaceAll(r.Errors.Error(), "\n", ". ") + ". In use is " + r.Used()
	if r.Key != "" {
		return "key " + r.Key + ": " + text
	}
	return text
}

// Used returns what is in use instead, for people.
func (r Rejection) Used() string {
	if r.Kept {
		return "its last valid text"
	}
	return "nothing of it, since it was never valid while this server runs"
}

// Live is the configuration in use: that of the file, with ConfigMaps over it, which change while
// the server runs.
type Live struct {
	namespace string
	apply     func(*Config, Change) error

	mu      sync.Mutex
	current *Config
	// offered are the latest documents of each namespace, and the errors of the rejected ones
	offered  map[string][]offer
	rejected []Rejection
}

// offer is a key of a ConfigMap as it was found.
type offer struct {
	file
	id    Rejection // without errors
	wrong error     // why it cannot be read at all
}

// NewLive returns the configuration in use. The ConfigMaps of the namespace are global. apply puts
// a new configuration into use; if it returns an error, the previous one stays.
func NewLive(current *Config, namespace string, apply func(*Config, Change) error) *Live {
	return &Live{namespace: namespace, apply: apply, current: current, offered: map[string][]offer{}}
}

// Namespace returns the namespace whose ConfigMaps are global; empty if none are read.
func (l *Live) Namespace() string { return l.namespace }

// Rejected returns the keys of ConfigMaps that are not used now.
func (l *Live) Rejected() []Rejection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rejected
}

// file returns the configuration file in use.
func (l *Live) file() file {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current.file
}

// Use puts the ConfigMaps of all namespaces into use, as far as they are valid. It returns the
// rejections that are new, sorted: each is returned once while its errors stay the same.
func (l *Live) Use(found []ConfigMap) ([]Rejection, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	offered := offersOf(found)
	if reflect.DeepEqual(offered, l.offered) {
		return nil, nil
	}
	next, rejections := l.merge(offered)
	if next != l.current {
		change := l.current.keepPending(next)
		change.Namespaces = differing(l.current.tenants, next.tenants)
		if err := l.apply(next, change); err != nil {
			return nil, fmt.Errorf("applying ConfigMaps: %w", err)
		}
		l.current = next
	}
	l.offered = offered
	return l.news(rejections), nil
}

// merge returns the configuration with the documents that are valid; the present one if nothing
// changes.
func (l *Live) merge(offered map[string][]offer) (next *Config, rejections []Rejection) {
	next = l.current
	accepted, rejections := accept(next.parts, offered[l.namespace], func(parts []file) []error {
		_, errs := load(next.flags, next.file, parts)
		return errs
	})
	if !slices.EqualFunc(accepted, next.parts, file.equal) {
		merged, _ := load(next.flags, next.file, accepted)
		merged.tenants, next = next.tenants, merged
	}
	tenants := make(map[string]*overrides)
	for _, namespace := range slices.Sorted(maps.Keys(offered)) {
		if namespace == l.namespace {
			continue
		}
		own, wrong := l.tenant(namespace, offered[namespace])
		rejections = append(rejections, wrong...)
		if own != nil {
			tenants[namespace] = own
		}
	}
	if !maps.Equal(tenants, next.tenants) {
		if next == l.current {
			next = new(*next)
		}
		next.tenants = tenants
	}
	return next, rejections
}

// tenant returns the settings of a namespace; nil if it has none. They are the present ones if
// nothing has changed.
func (l *Live) tenant(namespace string, offered []offer) (*overrides, []Rejection) {
	var before []file
	present := l.current.tenants[namespace]
	if present != nil {
		before = present.parts
	}
	accepted, rejections := accept(before, offered, func(parts []file) []error {
		_, errs := readOverrides(namespace, parts)
		return errs
	})
	switch {
	case len(accepted) == 0:
		return nil, rejections
	case present != nil && slices.EqualFunc(accepted, before, file.equal):
		return present, rejections
	}
	own, _ := readOverrides(namespace, accepted)
	return own, rejections
}

// news returns the rejections that were not returned before, and keeps all.
func (l *Live) news(rejections []Rejection) []Rejection {
	before := l.rejected
	l.rejected = rejections
	return slices.DeleteFunc(slices.Clone(rejections), func(r Rejection) bool {
		return slices.ContainsFunc(before, func(b Rejection) bool { return b.path() == r.path() && b.Errors.Error() == r.Errors.Error() })
	})
}

// reload puts the content of the configuration file into use, below the ConfigMaps in use.
func (l *Live) reload(content file) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, errs := load(l.current.flags, content, l.current.parts)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	next.tenants = l.current.tenants
	change := l.current.keepPending(next)
	if err := l.apply(next, change); err != nil {
		return err
	}
	l.current, l.offered = next, nil // a document that was rejected may be valid with it
	return nil
}

// accept returns the documents that are valid together, in their order. Of each it is the new text
// or, if that is invalid, the one that was accepted before: an invalid one changes nothing.
func accept(before []file, offered []offer, check func([]file) []error) (accepted []file, rejections []Rejection) {
	chosen := make([]*file, len(offered))
	errs := make([]error, len(offered))
	// choose tries a text, beside those that were chosen.
	choose := func(i int, f file) bool {
		was := chosen[i]
		chosen[i] = &f
		wrong := check(present(chosen))
		if len(wrong) == 0 {
			return true
		}
		chosen[i], errs[i] = was, errors.Join(wrong...)
		return false
	}
	for i, o := range offered { // those in use first: they are valid together, unless one is gone
		if at := slices.IndexFunc(before, func(f file) bool { return f.path == o.path }); at >= 0 {
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
			o.id.Errors, o.id.Kept = cmp.Or(o.wrong, errs[i]), chosen[i] != nil
			rejections = append(rejections, o.id)
		}
	}
	return present(chosen), rejections
}

// differing returns the namespaces whose settings differ, sorted.
func differing(a, b map[string]*overrides) (names []string) {
	for _, namespace := range slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b))) {
		if a[namespace] != b[namespace] {
			names = append(names, namespace)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
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

// offersOf returns the keys of the ConfigMaps by namespace, in the order of names and keys, in
// which later ones take precedence.
func offersOf(found []ConfigMap) map[string][]offer {
	offered := make(map[string][]offer)
	byName := func(a, b ConfigMap) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	for _, m := range slices.SortedFunc(slices.Values(found), byName) {
		add := func(key, text string, wrong error) {
			id := Rejection{Namespace: m.Namespace, Name: m.Name, Key: key}
			if len(offered[m.Namespace]) >= mostParts && wrong == nil {
				wrong = fmt.Errorf("the ConfigMaps of the namespace have more than %d keys, and the first by name count; join some", mostParts)
			}
			offered[m.Namespace] = append(offered[m.Namespace], offer{
				file: file{path: id.path(), data: []byte(text), source: SourceConfigMap}, id: id, wrong: wrong,
			})
		}
		if m.TooLarge {
			add("", "", errors.New("the ConfigMap is too large; keep it below 64 KiB"))
		}
		for _, key := range slices.Sorted(maps.Keys(m.Data)) {
			add(key, m.Data[key], nil)
		}
	}
	return offered
}
