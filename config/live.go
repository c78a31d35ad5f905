package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Map is a ConfigMap with settings. Each key of its data is a document in the form of the
// configuration file, and is used as a whole or not at all.
type Map struct {
	Namespace, Name string
	Data            map[string]string
	// TooLarge is true if the data are larger than is read; Data is then empty.
	TooLarge bool
}

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

// Used returns the text in use instead, for people.
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
	// offered are the latest documents of each namespace that were read
	offered  map[string][]offer
	rejected map[string][]Rejection // by namespace
}

// unread is unlike all documents that are found, so that these are read.
var unread = []offer{{}}

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
	return l.inOrder(l.rejected)
}

// file returns the configuration file in use.
func (l *Live) file() file {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current.file
}

// Use puts the ConfigMaps of all namespaces into use, as far as they are valid. It returns the
// rejections that are new, sorted: each is returned once while its errors stay the same. A
// namespace whose ConfigMaps are the same as before is not read again.
func (l *Live) Use(found []Map) ([]Rejection, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	offered := offersOf(found)
	if maps.EqualFunc(offered, l.offered, sameOffers) {
		return nil, nil
	}
	next, rejections, unusable := l.merge(offered)
	if next != l.current {
		change := l.current.keepPending(next)
		change.Namespaces = differing(l.current.tenants, next.tenants)
		if err := l.apply(next, change); err != nil {
			return nil, fmt.Errorf("applying ConfigMaps: %w", err)
		}
		l.current = next
	}
	if unusable != nil { // they are tried again
		offered[l.namespace] = unread
	}
	l.offered = offered
	return l.news(rejections), unusable
}

// merge returns the configuration with the documents that are valid; the present one if nothing
// changes. An error is that of the configuration file: the global documents in use stay then.
func (l *Live) merge(offered map[string][]offer) (next *Config, rejections map[string][]Rejection, err error) {
	rejections = make(map[string][]Rejection)
	next, rejections[l.namespace], err = l.mergeGlobal(offered[l.namespace])
	tenants := make(map[string]*overrides)
	for namespace, own := range offered {
		if namespace == l.namespace {
			continue
		}
		settings := l.current.tenants[namespace]
		if sameOffers(own, l.offered[namespace]) {
			rejections[namespace] = l.rejected[namespace]
		} else {
			settings, rejections[namespace] = l.tenant(namespace, own)
		}
		if settings != nil {
			tenants[namespace] = settings
		}
	}
	if !maps.Equal(tenants, next.tenants) {
		if next == l.current {
			next = new(*next)
		}
		next.tenants = tenants
	}
	return next, rejections, err
}

// mergeGlobal returns the configuration with the global documents that are valid. While the
// configuration file is invalid by itself, such as one that names a certificate that cannot be
// read now, no document can be checked, and those in use stay.
func (l *Live) mergeGlobal(offered []offer) (*Config, []Rejection, error) {
	now := l.current
	if sameOffers(offered, l.offered[l.namespace]) {
		return now, l.rejected[l.namespace], nil
	}
	if _, errs := load(now.flags, now.file, nil); len(errs) > 0 {
		return now, l.rejected[l.namespace], fmt.Errorf("the configuration file cannot be used now: %w", errors.Join(errs...))
	}
	accepted, rejections := accept(now.parts, offered, ScopeGlobal, func(parts []file) []error {
		_, errs := load(now.flags, now.file, parts)
		return errs
	})
	if slices.EqualFunc(accepted, now.parts, file.equal) {
		return now, rejections, nil
	}
	merged, errs := load(now.flags, now.file, accepted)
	if len(errs) > 0 { // the file has become invalid meanwhile
		return now, l.rejected[l.namespace], errors.Join(errs...)
	}
	merged.tenants = now.tenants
	return merged, rejections, nil
}

// tenant returns the settings of a namespace; nil if it has none. They are the present ones if
// nothing has changed.
func (l *Live) tenant(namespace string, offered []offer) (*overrides, []Rejection) {
	var before []file
	present := l.current.tenants[namespace]
	if present != nil {
		before = present.parts
	}
	accepted, rejections := accept(before, offered, ScopeNamespace, func(parts []file) []error {
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
func (l *Live) news(rejections map[string][]Rejection) []Rejection {
	before := l.rejected
	l.rejected = rejections
	return slices.DeleteFunc(l.inOrder(rejections), func(r Rejection) bool {
		return slices.ContainsFunc(before[r.Namespace], func(b Rejection) bool { return b.path() == r.path() && b.Errors.Error() == r.Errors.Error() })
	})
}

// inOrder returns rejections: the global ones, then those of tenants by namespace.
func (l *Live) inOrder(rejections map[string][]Rejection) []Rejection {
	all := slices.Clone(rejections[l.namespace])
	for _, namespace := range slices.Sorted(maps.Keys(rejections)) {
		if namespace != l.namespace {
			all = append(all, rejections[namespace]...)
		}
	}
	return all
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
	l.current = next
	l.offered[l.namespace] = unread // a document that was rejected may be valid with it
	return nil
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
