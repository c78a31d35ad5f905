package cluster

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wva-project/wva/inventory"
)

const (
	// discoverEvery is the shortest time between two discoveries of all kinds that the API server
	// serves, while a variant names an unknown one.
	discoverEvery = 30 * time.Second
	// discoverUnnamedEvery is the same for kinds that no variant names: most clusters never serve
	// all kinds that may be annotated.
	discoverUnnamedEvery = 10 * time.Minute
	// retryDiscovery is the time until the next lookup of a kind that is not known or that had no
	// answer. A lookup asks for the versions in which the kind is named: a small request.
	retryDiscovery = 5 * time.Second
	// probeQPS and probeBurst limit these requests over all kinds: each object may name another.
	probeQPS, probeBurst = 1, 5
	// requestLimit is the timeout of a single request.
	requestLimit = 10 * time.Second
)

// kind is a kind of scale target as the API server serves it. The zero value was not looked up yet.
type kind struct {
	asked    bool // the API server has answered, with the kind or that it has none
	checked  time.Time
	since    time.Time // time of the first lookup
	found    bool
	resource schema.GroupVersionResource
	scale    scalePaths        // of its objects
	problem  inventory.Problem // why it is not watched, if it was looked up and not found
}

// resolveKinds looks up the resources of the wanted kinds, and returns the time until the next
// lookup; 0 if none is needed.
func (c *Cluster) resolveKinds(ctx context.Context) (again time.Duration) {
	c.mu.Lock()
	demands := c.wanted.byKind()
	known := make(map[schema.GroupKind]kind, len(demands))
	for gk := range demands {
		known[gk] = c.kinds[gk]
	}
	c.mu.Unlock()
	oldest := func(a, b schema.GroupKind) int {
		return cmp.Or(known[a].checked.Compare(known[b].checked), compareKinds(a, b))
	}
	for _, gk := range slices.SortedFunc(maps.Keys(demands), oldest) {
		before := known[gk]
		isGone := c.isGone(before)
		if before.isDue(isGone) {
			known[gk] = c.discover(ctx, gk, demands[gk]).after(before, c.isKept(before))
			if !known[gk].same(before) || !c.isSynced() {
				c.changes.note(causeWatch)
			}
		}
		if isGone || !known[gk].found {
			again = retryDiscovery
		}
	}
	c.mu.Lock()
	c.kinds = known
	c.mu.Unlock()
	return again
}

func compareKinds(a, b schema.GroupKind) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
}

// isDue reports whether a kind has to be looked up: it never was, or was not found a while ago, or
// was found and is gone.
func (k kind) isDue(isGone bool) bool {
	return k.checked.IsZero() || ((isGone || !k.found) && time.Since(k.checked) >= retryDiscovery)
}

// same reports whether two lookups had the same result.
func (k kind) same(before kind) bool {
	return k.asked == before.asked && k.found == before.found && k.resource == before.resource && k.problem == before.problem &&
		slices.Equal(k.scale.replicas, before.scale.replicas) && slices.Equal(k.scale.selector, before.scale.selector)
}

// settled reports whether it is known if the kind can be watched, or is not waited for any more: if
// no variant names it, after the first attempt.
func (k kind) settled(now time.Time, named bool) bool {
	return k.asked || (!named && !k.checked.IsZero()) || (!k.since.IsZero() && now.Sub(k.since) >= firstReadLimit)
}

// isKept reports whether objects of a kind were seen, not longer ago than decisions use them.
// Before a CustomResourceDefinition is removed its objects are, so the kind is not served for
// another reason, such as an API server that has just started.
func (c *Cluster) isKept(k kind) bool {
	return k.found && slices.ContainsFunc(c.watchStates(), func(s watchState) bool {
		return s.id.resource == k.resource && s.rows > 0 && s.health.trusted(time.Now(), c.options.MaxAge)
	})
}

// isGone reports whether the API server ceased to serve a kind: it may serve another version now.
func (c *Cluster) isGone(k kind) bool {
	return k.found && slices.ContainsFunc(c.watchStates(), func(s watchState) bool {
		return s.id.resource == k.resource && s.health.failure != nil && s.health.failure.class == failedNotServed
	})
}

// after returns the kind as the result of a repeated lookup. A kind that is kept stays until it is
// found elsewhere. The text of the first error is kept: later ones differ in port numbers and the
// like.
func (k kind) after(before kind, isKept bool) kind {
	if isKept && !k.found {
		before.checked = k.checked
		return before
	}
	k.since = before.since
	if k.since.IsZero() {
		k.since = k.checked
	}
	if !k.asked && before.problem != (inventory.Problem{}) {
		k.asked, k.problem = before.asked, before.problem
	}
	return k
}

// discover looks up a kind. If it is not known, the cache of known kinds is read anew, unless that
// was done a while ago and the API server does not serve the kind in a version that is named.
func (c *Cluster) discover(ctx context.Context, gk schema.GroupKind, request kindRequest) kind {
	if c.discovered.IsZero() {
		c.discovered = time.Now()
	}
	k := c.resolve(ctx, gk, request.versions)
	if isNews := k.found && k.resource != c.kinds[gk].resource; !k.asked || isNews {
		return k
	}
	every := discoverUnnamedEvery
	if request.named {
		every = discoverEvery
	}
	if time.Since(c.discovered) < every {
		if !c.probes.TryAccept() {
			k.checked = c.kinds[gk].checked // it is the next one
			return k
		}
		switch isServed, err := c.serves(ctx, gk, request.versions); {
		case err != nil:
			return unanswered(kindName(gk), err)
		case !isServed:
			return k
		}
	}
	c.clients.kinds.ResetWithContext(ctx)
	c.discovered = time.Now()
	return c.resolve(ctx, gk, request.versions)
}

// serves asks the API server whether it serves a kind that can be scaled in one of the versions. It
// asks for the first, and for others as far as the limit allows.
func (c *Cluster) serves(ctx context.Context, gk schema.GroupKind, versions []string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	for i, version := range versions {
		if i > 0 && !c.probes.TryAccept() {
			break
		}
		list, err := c.clients.served.ServerResourcesForGroupVersionWithContext(ctx, gk.WithVersion(version).GroupVersion().String())
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return false, err
		}
		if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == gk.Kind && r.Namespaced && scales(list, r.Name) }) {
			return true, nil
		}
	}
	return false, nil
}

// resolve looks up one kind.
func (c *Cluster) resolve(ctx context.Context, gk schema.GroupKind, versions []string) kind {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	name := kindName(gk)
	mapping, err := c.mapping(ctx, gk, versions)
	switch {
	case meta.IsNoMatchError(err):
		return absent(name, "is not known to the API server", "install its CustomResourceDefinition, or correct scaleTargetRef")
	case err != nil:
		return unanswered(name, err)
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return absent(name, "has no namespace, so it cannot be scaled by an object that has one", "correct scaleTargetRef")
	}
	resources, err := c.clients.resources.ServerResourcesForGroupVersionWithContext(ctx, mapping.Resource.GroupVersion().String())
	switch {
	case err != nil:
		return unanswered(name, err)
	case !scales(resources, mapping.Resource.Resource):
		return absent(name, "has no scale subresource, so its objects cannot be scaled", "correct scaleTargetRef")
	}
	return kind{
		asked: true, checked: time.Now(), found: true,
		resource: mapping.Resource, scale: c.scalePathsOf(ctx, gk, mapping.Resource),
	}
}

// unanswered returns a kind whose lookup had no answer.
func unanswered(name string, err error) kind {
	return kind{checked: time.Now(), problem: inventory.Problem{
		Object: name, Text: "cannot be looked up: " + err.Error(), Remedy: "check that the API server can be reached and answers",
	}}
}

// absent returns a kind that is not watched. It is looked up again: it may be installed.
func absent(name, text, remedy string) kind {
	return kind{asked: true, checked: time.Now(), problem: inventory.Problem{
		Object: name, Text: text + "; variants that scale one are held", Remedy: remedy,
	}}
}

func kindName(gk schema.GroupKind) string {
	if gk.Group == "" {
		return "kind " + gk.Kind
	}
	return "kind " + gk.Kind + " of " + gk.Group
}

// mapping returns the resource of a kind, in a version that a variant names if that is served.
func (c *Cluster) mapping(ctx context.Context, gk schema.GroupKind, versions []string) (*meta.RESTMapping, error) {
	for _, version := range versions {
		found, err := c.clients.kinds.RESTMappingWithContext(ctx, gk, version)
		if err == nil || !meta.IsNoMatchError(err) {
			return found, err
		}
	}
	return c.clients.kinds.RESTMappingWithContext(ctx, gk)
}

func scales(resources *metav1.APIResourceList, plural string) bool {
	return resources != nil && slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == plural+"/scale" })
}

// scalePaths are the paths in an object of the fields of its scale subresource; nil if Decode knows
// the kind.
type scalePaths struct{ replicas, selector []string }

// scalePathsOf returns the paths in objects of a kind, as the scale subresource of its
// CustomResourceDefinition states them, once per kind; the usual ones if that may not be read.
func (c *Cluster) scalePathsOf(ctx context.Context, gk schema.GroupKind, resource schema.GroupVersionResource) scalePaths {
	usual := scalePaths{[]string{"spec", "replicas"}, []string{"status", "selector"}}
	if inventory.Decodes(gk) {
		return scalePaths{}
	}
	if !strings.Contains(gk.Group, ".") {
		return usual // not defined by a CustomResourceDefinition
	}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	definition, err := c.clients.objects.Resource(definitions).Get(ctx, resource.GroupResource().String(), metav1.GetOptions{})
	if err != nil {
		return usual
	}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		fields, _ := v.(map[string]any)
		if fields["name"] != resource.Version {
			continue
		}
		path := func(field string, byDefault []string) []string {
			text, _, _ := unstructured.NestedString(fields, "subresources", "scale", field)
			if names := strings.FieldsFunc(text, func(r rune) bool { return r == '.' }); len(names) > 1 {
				return names
			}
			return byDefault
		}
		return scalePaths{path("specReplicasPath", usual.replicas), path("labelSelectorPath", usual.selector)}
	}
	return usual
}
