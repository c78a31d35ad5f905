package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/wva-project/wva/fleet"
)

// Unmatched is a row of the configuration that matches nothing in the fleet.
type Unmatched struct {
	Section string // the setting, such as "models"
	Row     string // such as "{namespace: llm, model: llama-8b}"
	// Similar is the similar name in the fleet; empty if there is none. Either may be misspelt.
	Similar string
}

// MostUnmatched is how many unmatched rows get a similar name, and are worth a line of their own.
const MostUnmatched = 20

// Unmatched returns the rows of models, serviceClasses, maxAccelerators, fixedAccelerators,
// elasticAccelerators, accelerators and profiles that match nothing in a fleet, in the order of the
// table of settings. Shipped rows are left out. A pool without nodes shows nothing.
//
// A row of profiles matches if it fits the model and the accelerator type of a variant; it also
// matches while that type is unknown. Precision and tensor parallelism are not compared.
func (c *Config) Unmatched(variants []fleet.Variant, pools []fleet.Pool) []Unmatched {
	f := namesOf(variants, pools)
	var rows []Unmatched
	report := func(section, row string, near func() string) {
		u := Unmatched{Section: section, Row: row}
		if len(rows) < MostUnmatched { // comparing names with a large fleet takes time
			u.Similar = near()
		}
		rows = append(rows, u)
	}
	for _, m := range c.Models {
		if !slices.ContainsFunc(f.models, m.Matches) {
			report("models", m.name(), func() string { return f.nearestModel(m) })
		}
	}
	for _, class := range c.ServiceClasses {
		if !slices.Contains(f.classes, class.Name) {
			report("serviceClasses", class.Name, func() string { return nearest(class.Name, f.classes) })
		}
	}
	for _, row := range c.MaxAccelerators {
		if !slices.ContainsFunc(f.namespaces, func(namespace string) bool { return fleet.MatchPattern(row.Namespace, namespace) }) {
			report("maxAccelerators", row.Namespace, func() string { return nearestTo(row.Namespace, f.namespaces) })
		}
	}
	for _, list := range c.acceleratorLists() {
		for _, name := range list.names {
			if !containsFold(f.accelerators, name) {
				report(list.setting, name, func() string { return nearest(name, f.accelerators) })
			}
		}
	}
	shipped := shippedAccelerators()
	for _, a := range c.Accelerators {
		// a row takes the spelling of the nodes
		if name := string(a.Name); !slices.Contains(shipped, name) && !slices.Contains(f.accelerators, name) && !containsFold(f.onNodes, name) {
			report("accelerators", name, func() string { return nearest(name, f.accelerators) })
		}
	}
	for _, p := range c.Profiles {
		if near, found := f.fit(p); !found {
			report("profiles", profileName(p), near)
		}
	}
	return rows
}

// fleetNames are the names that rows of the configuration can match, each sorted.
type fleetNames struct {
	variants     []fleet.Variant
	namespaces   []string // of variants
	models       []fleet.ModelID
	classes      []string
	accelerators []string // of variants and nodes
	onNodes      []string // accelerators of nodes
}

func namesOf(variants []fleet.Variant, pools []fleet.Pool) fleetNames {
	f := fleetNames{variants: variants}
	for _, v := range variants {
		f.models = append(f.models, v.Model)
		f.namespaces = append(f.namespaces, v.Model.Namespace)
		f.classes = append(f.classes, v.ServiceClass)
		f.accelerators = append(f.accelerators, string(v.Accelerator))
	}
	for _, p := range pools {
		if len(p.Nodes) > 0 {
			f.onNodes = append(f.onNodes, string(p.Accelerator))
		}
	}
	f.accelerators = append(f.accelerators, f.onNodes...)
	slices.SortFunc(f.models, fleet.ModelID.Compare)
	slices.Sort(f.namespaces)
	slices.Sort(f.classes)
	slices.Sort(f.accelerators)
	f.models, f.classes, f.accelerators = slices.Compact(f.models), slices.Compact(f.classes), slices.Compact(f.accelerators)
	return f
}

// nearestModel returns the row that was probably meant: of a similar name, or else of the same name
// in another namespace, or of a name that was split at the wrong slash.
func (f fleetNames) nearestModel(row ModelRow) string {
	anywhere, anyName := ModelRow{Model: row.Model}, ModelRow{Namespace: row.Namespace}
	var namespaces, names, ids []string // of models that match the other field
	for _, id := range f.models {
		if row.Namespace != "" && anywhere.Matches(id) {
			namespaces = append(namespaces, id.Namespace)
		}
		if row.Model != "" && anyName.Matches(id) {
			names = append(names, id.Name)
		}
		ids = append(ids, id.String())
	}
	if near := nearestTo(row.Model, names); near != "" {
		return ModelRow{Namespace: row.Namespace, Model: near}.name()
	}
	if near := nearestTo(row.Namespace, namespaces); near != "" {
		return ModelRow{Namespace: near, Model: row.Model}.name()
	}
	whole := strings.TrimPrefix(row.Namespace+"/"+row.Model, "/")
	near := nearest(whole, ids)
	for _, id := range f.models {
		if row.Model != "" && (id.Name == whole || id.Name == row.Model || id.String() == near) {
			return ModelRow{Namespace: id.Namespace, Model: id.Name}.name()
		}
	}
	return ""
}

// nearestTo returns the name that is similar to a pattern: the part before the first * is compared
// with the beginnings of the names.
func nearestTo(pattern string, names []string) string {
	literal, _, isPattern := strings.Cut(pattern, "*")
	if !isPattern {
		return nearest(pattern, names)
	}
	beginnings := make([]string, len(names))
	for i, name := range names {
		beginnings[i] = name[:min(len(name), len(literal))]
	}
	if near := nearest(literal, beginnings); near != "" {
		return names[slices.Index(beginnings, near)]
	}
	return ""
}

// fit reports whether a profile matches a variant. If it does not, near returns a similar
// accelerator type of a variant of its model, or else a similar model name.
func (f fleetNames) fit(p fleet.Profile) (near func() string, found bool) {
	var accelerators, models []string
	for _, v := range f.variants {
		models = append(models, v.Model.Name)
		if !p.Fits(v.Model.Name, p.Accelerator, p.Precision, p.TensorParallel) {
			continue
		}
		if v.Accelerator == "" || v.Accelerator == p.Accelerator {
			return nil, true
		}
		accelerators = append(accelerators, string(v.Accelerator))
	}
	return func() string {
		slices.Sort(accelerators)
		slices.Sort(models)
		return cmp.Or(nearest(string(p.Accelerator), accelerators), nearest(strings.Trim(p.Model, "*"), models))
	}, false
}

// nearest returns the similar name; empty for none.
func nearest(name string, candidates []string) string {
	near, _ := fleet.Nearest(name, candidates)
	return near
}

func containsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(other, name) })
}

// shippedAccelerators returns the names of the starter catalogue.
func shippedAccelerators() []string {
	var c Config
	accelerators(func(c *Config) *[]fleet.AcceleratorSpec { return &c.Accelerators }).set(&c, textNode(starterCatalogue))
	var names []string
	for _, a := range c.Accelerators {
		names = append(names, string(a.Name))
	}
	return names
}
