package cluster

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wva-project/wva/inventory"
)

const (
	// discoverEvery is the shortest time between two discoveries of the kinds that the API server
	// serves, while a variant names an unknown one.
	discoverEvery = 30 * time.Second
	// discoverUnnamedEvery is the same for kinds that no variant names: most clusters never serve
	// all kinds that may be annotated.
	discoverUnnamedEvery = 10 * time.Minute
	// retryDiscovery is the time until the next attempt after a discovery without an answer.
	retryDiscovery = 5 * time.Second
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
	replicas []string          // path of the number of replicas in its objects
	problem  inventory.Problem // why it is not watched, if it was looked up and not found
	retry    time.Duration     // time until the next lookup, if it was not found
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
	for _, gk := range slices.SortedFunc(maps.Keys(demands), compareKinds) {
		isGone, named := c.isGone(known[gk]), demands[gk].named
		if known[gk].isDue(isGone, named) {
			known[gk] = c.discover(ctx, gk, demands[gk].versions).after(known[gk])
			c.changes.note(causeWatch)
		}
		if k := known[gk]; (isGone || !k.found) && (again == 0 || k.wait(named) < again) {
			again = k.wait(named)
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
func (k kind) isDue(isGone, named bool) bool {
	return k.checked.IsZero() || ((isGone || !k.found) && time.Since(k.checked) >= k.wait(named))
}

// wait returns the time between two lookups of the kind.
func (k kind) wait(named bool) time.Duration {
	if k.asked && !k.found && !named {
		return discoverUnnamedEvery
	}
	return k.retry
}

// settled reports whether it is known if the kind can be watched, or is not waited for any more: if
// no variant names it, after the first attempt.
func (k kind) settled(now time.Time, named bool) bool {
	return k.asked || (!named && !k.checked.IsZero()) || (!k.since.IsZero() && now.Sub(k.since) >= firstReadLimit)
}

// isGone reports whether the API server ceased to serve a kind: it may serve another version now.
func (c *Cluster) isGone(k kind) bool {
	return k.found && slices.ContainsFunc(c.watchStates(), func(s watchState) bool {
		return s.id.resource == k.resource && s.health.failure != nil && s.health.failure.class == failedNotServed
	})
}

// after returns the kind as the result of a repeated lookup. The text of the first error is kept:
// later ones differ in port numbers and the like.
func (k kind) after(before kind) kind {
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
// was done a while ago.
func (c *Cluster) discover(ctx context.Context, gk schema.GroupKind, versions []string) kind {
	if c.discovered.IsZero() {
		c.discovered = time.Now()
	}
	k := c.resolve(ctx, gk, versions)
	isNews := k.found && k.resource != c.kinds[gk].resource
	if k.asked && !isNews && time.Since(c.discovered) >= discoverEvery {
		c.clients.kinds.ResetWithContext(ctx)
		c.discovered = time.Now()
		k = c.resolve(ctx, gk, versions)
	}
	return k
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
		asked: true, checked: time.Now(), retry: discoverEvery, found: true,
		resource: mapping.Resource, replicas: c.replicasPath(ctx, gk, mapping.Resource),
	}
}

// unanswered returns a kind whose lookup had no answer.
func unanswered(name string, err error) kind {
	return kind{checked: time.Now(), retry: retryDiscovery, problem: inventory.Problem{
		Object: name, Text: "cannot be looked up: " + err.Error(), Remedy: "check that the API server can be reached and answers",
	}}
}

// absent returns a kind that is not watched. It is looked up again: it may be installed.
func absent(name, text, remedy string) kind {
	return kind{asked: true, checked: time.Now(), retry: discoverEvery, problem: inventory.Problem{
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

// replicasPath returns the path of the number of replicas in objects of a kind, as the scale
// subresource of its CustomResourceDefinition states it, once per kind; spec.replicas if that may
// not be read. It returns nil if Decode knows the kind.
func (c *Cluster) replicasPath(ctx context.Context, gk schema.GroupKind, resource schema.GroupVersionResource) []string {
	usual := []string{"spec", "replicas"}
	if inventory.Decodes(gk) {
		return nil
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
		path, _, _ := unstructured.NestedString(fields, "subresources", "scale", "specReplicasPath")
		if names := strings.FieldsFunc(path, func(r rune) bool { return r == '.' }); len(names) > 1 {
			return names
		}
	}
	return usual
}
