package planner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/wva-project/wva/fleet"
)

// findings returns the findings of every variant that has any: those of its definition, and names
// that the rest of the snapshot does not know.
func findings(s fleet.Snapshot) map[fleet.VariantID][]fleet.Finding {
	accelerators := knownAccelerators(s)
	classes := make([]string, len(s.Classes))
	for i, class := range s.Classes {
		classes[i] = class.Name
	}
	found := make(map[fleet.VariantID][]fleet.Finding)
	for i := range s.Variants {
		v := &s.Variants[i]
		all := v.Findings
		if name := string(v.Accelerator); name != "" && len(accelerators) > 0 && !slices.Contains(accelerators, name) {
			all = append(slices.Clip(all), unknownAccelerator(name, accelerators))
		}
		switch at := slices.Index(classes, v.ServiceClass); {
		case v.ServiceClass == "":
		case at < 0:
			all = append(slices.Clip(all), unknownServiceClass(v.ServiceClass, classes))
		case !s.Classes[at].GrantedTo(v.ID.Namespace):
			all = append(slices.Clip(all), classNotGranted(v))
		}
		if len(all) > 0 {
			found[v.ID] = fleet.SortFindings(all)
		}
	}
	return found
}

// addFinding adds a finding to those of a variant.
func (x *view) addFinding(id fleet.VariantID, f fleet.Finding) {
	x.findings[id] = fleet.SortFindings(append(slices.Clip(x.findings[id]), f))
}

// sharedAdapters returns the finding of adapters with names of other models, the first of which has
// that of the owner. It is one finding for all of them, so that many cost no time.
func sharedAdapters(names []string, owner fleet.ModelID) fleet.Finding {
	text := fmt.Sprintf("adapter %.64q is a name of model %s: its requests are demand of that model", names[0], owner)
	if more := len(names) - 1; more > 0 {
		text += fmt.Sprintf("; %s of other models too", countOf(more, "further adapter has a name", "further adapters have names"))
	}
	return fleet.Finding{
		Code: fleet.CodeSharedAdapter, Text: text,
		Remedy: "give the adapter a name of its own, or remove it from adapters",
	}
}

// scrapedTwice returns the finding of a variant of which several jobs scrape a pod; false if there
// is none.
func (v *variant) scrapedTwice() (fleet.Finding, bool) {
	at := slices.IndexFunc(v.engines, func(r *fleet.Usage) bool { return r.ScrapedTwice })
	if at < 0 {
		return fleet.Finding{}, false
	}
	return fleet.Finding{
		Code:   fleet.CodeScrapedTwice,
		Text:   fmt.Sprintf("several jobs of Prometheus scrape pods of the variant, such as %s; each pod counts once", v.engines[at].Pod),
		Remedy: "remove one of the PodMonitors, ServiceMonitors or scrape jobs that select them",
	}, true
}

// knownAccelerators returns the accelerator types of the catalogue, the nodes and the profiles,
// sorted.
func knownAccelerators(s fleet.Snapshot) []string {
	var names []string
	for _, row := range s.Accelerators {
		names = append(names, string(row.Name))
	}
	for _, pool := range s.Pools {
		if len(pool.Nodes) > 0 {
			names = append(names, string(pool.Accelerator))
		}
	}
	for _, profile := range s.Profiles {
		names = append(names, string(profile.Accelerator))
	}
	slices.SortFunc(names, cmp.Compare)
	return slices.Compact(names)
}

func unknownAccelerator(name string, known []string) fleet.Finding {
	return fleet.Finding{
		Code:   fleet.CodeUnknownAccelerator,
		Text:   fmt.Sprintf("accelerator %.64q is neither in the catalogue nor on any node", name),
		Remedy: didYouMean(name, known) + "correct accelerator, or add a row to accelerators of the configuration",
	}
}

func unknownServiceClass(name string, known []string) fleet.Finding {
	return fleet.Finding{
		Code:   fleet.CodeUnknownServiceClass,
		Text:   fmt.Sprintf("serviceClass %.64q is not configured, so the variant has priority 0", name),
		Remedy: didYouMean(name, known) + "correct serviceClass, or add a row to serviceClasses of the configuration",
	}
}

func classNotGranted(v *fleet.Variant) fleet.Finding {
	return fleet.Finding{
		Code:   fleet.CodeServiceClassNotGranted,
		Text:   fmt.Sprintf("serviceClass %.64q is not granted to namespace %s, so the variant has priority 0", v.ServiceClass, v.ID.Namespace),
		Remedy: "add the namespace to namespaces of the class in the configuration, or remove serviceClass",
	}
}

func didYouMean(name string, known []string) string {
	if near, found := fleet.Nearest(name, known); found {
		return "did you mean " + near + "? "
	}
	return ""
}
