package cluster

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
)

// kindID is a kind of scale target and the namespace in which it is watched; an empty namespace is
// all of them.
type kindID struct {
	schema.GroupKind
	namespace string
}

// wantedKinds is the kinds that are to be watched.
type wantedKinds map[kindID]kindRequest

// kindRequest is the versions in which a kind is named, sorted, and whether a variant names it. A
// kind that none names is watched for its annotations, and blocks nothing.
type kindRequest struct {
	versions []string
	named    bool
}

func (d kindRequest) equal(other kindRequest) bool {
	return d.named == other.named && slices.Equal(d.versions, other.versions)
}

// kindsOf returns the kinds that the variants name and, with DryRun, those that may be annotated.
func (c *Cluster) kindsOf(variants []fleet.Variant) wantedKinds {
	w := wantedKinds{}
	for _, v := range variants {
		version, err := schema.ParseGroupVersion(v.Target.APIVersion)
		if err != nil || v.Target.Kind == "" || v.Target.Name == "" {
			continue
		}
		id := kindID{GroupKind: version.WithKind(v.Target.Kind).GroupKind()}
		if len(c.options.Namespaces) > 0 {
			id.namespace = v.Target.Namespace
		}
		versions := w[id].versions
		if !slices.Contains(versions, version.Version) {
			versions = append(versions, version.Version)
			slices.Sort(versions)
		}
		w[id] = kindRequest{versions, true}
	}
	if c.options.DryRun {
		w.addAnnotated(c.options.Namespaces)
	}
	return w
}

// addAnnotated adds the kinds that may be annotated, unless a variant names them; no namespaces are
// all.
func (w wantedKinds) addAnnotated(namespaces []string) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, r := range resources {
		if !r.mayBeAnnotated() {
			continue
		}
		for _, namespace := range namespaces {
			if id := (kindID{r.groupKind(), namespace}); !w[id].named {
				w[id] = kindRequest{versions: []string{r.gvr.Version}}
			}
		}
	}
}

// setWanted wakes the supervisor if the kinds differ from the previous ones.
func (c *Cluster) setWanted(w wantedKinds) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !maps.EqualFunc(w, c.wanted, kindRequest.equal) {
		c.wanted = w
		c.rearrange()
	}
}

// byKind returns the request for each kind, over all namespaces.
func (w wantedKinds) byKind() map[schema.GroupKind]kindRequest {
	demands := map[schema.GroupKind]kindRequest{}
	for id, d := range w {
		all := slices.Concat(demands[id.GroupKind].versions, d.versions)
		slices.Sort(all)
		demands[id.GroupKind] = kindRequest{slices.Compact(all), d.named || demands[id.GroupKind].named}
	}
	return demands
}

// problems returns why kinds that variants name are not watched.
func (w wantedKinds) problems(kinds map[schema.GroupKind]kind) []inventory.Problem {
	unique := map[schema.GroupKind]bool{}
	var problems []inventory.Problem
	for id, d := range w {
		if k := kinds[id.GroupKind]; d.named && k.problem != (inventory.Problem{}) && !unique[id.GroupKind] {
			unique[id.GroupKind] = true
			problems = append(problems, k.problem)
		}
	}
	return problems
}
