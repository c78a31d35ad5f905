package inventory

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
)

const (
	// discoverEvery is how often at most the API server is asked which kinds there are, while a variant names one that is
	// not known.
	discoverEvery = 30 * time.Second
	// discoverUnnamedEvery is how often where no variant names it: most clusters never serve all kinds that may be annotated.
	discoverUnnamedEvery = 10 * time.Minute
	// retryDiscovery is when it is asked again after it did not answer.
	retryDiscovery = 5 * time.Second
	// requestLimit is how long a single request may take.
	requestLimit = 10 * time.Second
)

// kind is what is known of a kind of scale target. The zero value was not asked for yet.
type kind struct {
	asked    bool // the API server has answered, or refused to
	checked  time.Time
	since    time.Time // when it was asked for first
	found    bool
	resource schema.GroupVersionResource
	replicas []string      // where its objects say how many replicas they want
	problem  Problem       // why it is not watched, where it was asked for and not found
	retry    time.Duration // when to ask again, where it was not found
}

// resolveKinds asks which resources the wanted kinds are, and returns when to ask again; 0 where that is not needed.
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

// isDue reports whether a kind is to be asked for: it never was, or was not found a while ago, or found and is gone.
func (k kind) isDue(isGone, named bool) bool {
	return k.checked.IsZero() || ((isGone || !k.found) && time.Since(k.checked) >= k.wait(named))
}

// wait returns how long after the last time the kind is asked for again.
func (k kind) wait(named bool) time.Duration {
	if k.asked && !k.found && !named {
		return discoverUnnamedEvery
	}
	return k.retry
}

// settled reports whether it is known if the kind can be watched, or it was given up to learn that: where no variant names
// it, after the first attempt.
func (k kind) settled(now time.Time, named bool) bool {
	return k.asked || (!named && !k.checked.IsZero()) || (!k.since.IsZero() && now.Sub(k.since) >= firstReadLimit)
}

// isGone reports whether the API server ceased to serve a kind: it may be served in another version now.
func (c *Cluster) isGone(k kind) bool {
	return k.found && slices.ContainsFunc(c.watchStates(), func(s watchState) bool {
		return s.id.resource == k.resource && s.health.failure != nil && s.health.failure.class == failedNotServed
	})
}

// after returns the kind as the one that was asked for again. The first error tells why it cannot be: later ones differ in
// port numbers and the like.
func (k kind) after(before kind) kind {
	k.since = before.since
	if k.since.IsZero() {
		k.since = k.checked
	}
	if !k.asked && before.problem != (Problem{}) {
		k.asked, k.problem = before.asked, before.problem
	}
	return k
}

// discover resolves a kind. Where it is not known, what was learnt about kinds a while ago is learnt anew.
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

// resolve asks for one kind.
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

// unanswered returns a kind that could not be asked for.
func unanswered(name string, err error) kind {
	return kind{checked: time.Now(), retry: retryDiscovery, problem: Problem{
		Object: name, Text: "cannot be looked up: " + err.Error(), Remedy: "see that the API server can be reached and answers",
	}}
}

// absent returns a kind that is not watched. It is asked for again: it may be installed.
func absent(name, text, remedy string) kind {
	return kind{asked: true, checked: time.Now(), retry: discoverEvery, problem: Problem{
		Object: name, Text: text + "; variants that scale one are held", Remedy: remedy,
	}}
}

func kindName(gk schema.GroupKind) string {
	if gk.Group == "" {
		return "kind " + gk.Kind
	}
	return "kind " + gk.Kind + " of " + gk.Group
}

// mapping returns the resource of a kind, in a version that a variant names where it is served.
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

// replicasPath returns where objects of a kind say how many replicas they want: what the scale subresource of its
// CustomResourceDefinition says, once per kind; spec.replicas where that may not be read. nil where Decode knows the kind.
func (c *Cluster) replicasPath(ctx context.Context, gk schema.GroupKind, resource schema.GroupVersionResource) []string {
	usual := []string{"spec", "replicas"}
	if decoder(gk) != nil {
		return nil
	}
	if !strings.Contains(gk.Group, ".") {
		return usual // not made by a definition
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
