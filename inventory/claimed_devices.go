package inventory

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// claimReader reads the accelerators of claims into requests of resources, so that pods with claims
// count like those that request extended resources.
type claimReader struct {
	claims    map[podKey]*resourcev1.ResourceClaim // by namespace and name
	templates map[podKey]*resourcev1.ResourceClaimTemplate
	classes   deviceClasses
	extended  map[corev1.ResourceName]corev1.ResourceName
	// first are the pods that count with a claim that they name, and that several may share
	first   map[podKey]string
	alone   map[sharedRequest][]corev1.Container // of pods that request no other accelerators
	devices deviceCounts
}

// sharedRequest is a number of devices that a resource counts, with processors and memory.
type sharedRequest struct {
	name corev1.ResourceName
	n    int
	compute
}

// withDevices returns the objects with the devices of dynamic resource allocation as resources:
// allocatable ones of the nodes, and requests of pods and templates. Objects that have none are
// those of o.
func (o Objects) withDevices() (Objects, deviceCounts) {
	if len(o.ResourceSlices)+len(o.ResourceClaims)+len(o.ResourceClaimTemplates)+len(o.DeviceClasses) == 0 {
		return o, deviceCounts{}
	}
	r := o.newClaimReader()
	o.Nodes = replaced(o.Nodes, r.devices.node)
	o.Pods = replaced(o.Pods, r.pod)
	o.Targets = slices.Clone(o.Targets)
	for i := range o.Targets {
		r.readTemplates(&o.Targets[i])
	}
	return o, r.devices
}

// replaced returns the rows as a function replaces them.
func replaced[T any](rows []*T, by func(*T) *T) []*T {
	own := make([]*T, len(rows))
	for i := range rows {
		own[i] = by(rows[i])
	}
	return own
}

func (o Objects) newClaimReader() *claimReader {
	r := &claimReader{
		claims: make(map[podKey]*resourcev1.ResourceClaim, len(o.ResourceClaims)), templates: map[podKey]*resourcev1.ResourceClaimTemplate{},
		classes: deviceClasses{}, first: map[podKey]string{}, alone: map[sharedRequest][]corev1.Container{},
	}
	allocated := make(map[deviceKey]bool, len(o.ResourceClaims))
	for _, claim := range o.ResourceClaims {
		r.claims[podKey{claim.Namespace, claim.Name}] = claim
		for device := range allocatedDevices(claim) {
			allocated[device] = true
		}
	}
	for _, template := range o.ResourceClaimTemplates {
		r.templates[podKey{template.Namespace, template.Name}] = template
	}
	for _, class := range o.DeviceClasses {
		r.classes[class.Name] = class
	}
	r.extended = r.classes.extended()
	nodes := make(map[string]*corev1.Node, len(o.Nodes))
	for _, node := range o.Nodes {
		nodes[node.Name] = node
	}
	r.devices = o.countDevices(allocated, nodes)
	for _, pod := range o.Pods {
		r.notePod(pod)
	}
	return r
}

// allocatedDevices returns the accelerators that are allocated to a claim. With administrative
// access they stay free for others.
func allocatedDevices(claim *resourcev1.ResourceClaim) iter.Seq[deviceKey] {
	return func(yield func(deviceKey) bool) {
		if claim.Status.Allocation == nil {
			return
		}
		results := claim.Status.Allocation.Devices.Results
		for i := range results {
			result := &results[i]
			isOwn := result.AdminAccess == nil || !*result.AdminAccess
			if isOwn && driverOf(result.Driver) != nil && !yield(deviceKey{result.Driver, result.Pool, result.Device}) {
				return
			}
		}
	}
}

// notePod notes the claims that a pod shares with others, and closes the node of a pod that runs
// with devices that no claim shows: the kubelet starts no pod without its devices. Before it runs,
// the devices are in the claim, or a tenant has set the node by hand: that closes nothing.
func (r *claimReader) notePod(pod *corev1.Pod) {
	if len(pod.Spec.ResourceClaims) == 0 || ended(pod) {
		return
	}
	for _, of := range pod.Spec.ResourceClaims {
		name, isNeeded := claimName(pod, of)
		key := podKey{pod.Namespace, name}
		if first, isShared := r.first[key]; of.ResourceClaimName != nil && (!isShared || pod.Name < first) {
			r.first[key] = pod.Name
		}
		claim := r.claims[key]
		if isNeeded && pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodRunning && (claim == nil || claim.Status.Allocation == nil) {
			r.devices.closed[pod.Spec.NodeName] = closedByUnseenClaim
		}
	}
}

// claimName returns the name of the claim of a pod; empty if it has not been made yet, and false if
// the pod needs none.
func claimName(pod *corev1.Pod, of corev1.PodResourceClaim) (string, bool) {
	if of.ResourceClaimName != nil {
		return *of.ResourceClaimName, true
	}
	for _, status := range pod.Status.ResourceClaimStatuses {
		if status.Name == of.Name {
			if status.ResourceClaimName == nil {
				return "", false
			}
			return *status.ResourceClaimName, true
		}
	}
	return "", true
}

// pod returns a pod with the devices of its claims as requests.
func (r *claimReader) pod(pod *corev1.Pod) *corev1.Pod {
	var requests deviceRequests
	for _, of := range pod.Spec.ResourceClaims {
		name, isNeeded := claimName(pod, of)
		key := podKey{pod.Namespace, name}
		claim := r.claims[key]
		switch {
		case !isNeeded || claim != nil && of.ResourceClaimName != nil && r.first[key] != pod.Name:
		case claim != nil && claim.Status.Allocation != nil:
			r.addAllocated(&requests, claim, pod)
		default:
			requests.addAll(r.claim(pod.Namespace, of, claim))
		}
	}
	containers, before := pod.Spec.Containers, pod.Spec.InitContainers
	if status := pod.Status.ExtendedResourceClaimStatus; status != nil {
		if claim := r.claims[podKey{pod.Namespace, status.ResourceClaimName}]; claim != nil && claim.Status.Allocation != nil {
			r.addAllocated(&requests, claim, pod)
			containers, before = withoutMapped(containers, status.RequestMappings), withoutMapped(before, status.RequestMappings)
		}
	}
	r.addExtended(&requests, containers)
	if len(requests.counts) == 0 {
		return pod
	}
	own := *pod
	own.Spec.Containers, own.Spec.InitContainers = r.containers(containers, requests), before
	return &own
}

// addAllocated adds the devices of a claim that are on the node of a pod, or that are published no
// longer.
func (r *claimReader) addAllocated(requests *deviceRequests, claim *resourcev1.ResourceClaim, pod *corev1.Pod) {
	for device := range allocatedDevices(claim) {
		key, isPublished := r.devices.resources[device]
		switch {
		case !isPublished:
			requests.add(driverOf(device.driver).resource(""), 1)
		case pod.Spec.NodeName == "" || key.node == pod.Spec.NodeName:
			requests.add(key.resource, 1)
		}
	}
}

// claim returns the accelerators that a claim of a pod requests: the claim that is seen, or the
// template of which it is made.
func (r *claimReader) claim(namespace string, of corev1.PodResourceClaim, claim *resourcev1.ResourceClaim) deviceRequests {
	if claim == nil && of.ResourceClaimName != nil {
		claim = r.claims[podKey{namespace, *of.ResourceClaimName}]
	}
	if claim != nil {
		return r.classes.requests(&claim.Spec.Devices)
	}
	if of.ResourceClaimTemplateName != nil {
		if template := r.templates[podKey{namespace, *of.ResourceClaimTemplateName}]; template != nil {
			return r.classes.requests(&template.Spec.Spec.Devices)
		}
	}
	return deviceRequests{isOpen: true}
}

// readTemplates replaces the claims of the templates of a target by requests.
func (r *claimReader) readTemplates(t *Target) {
	read := func(template *corev1.PodTemplateSpec, pods int) *corev1.PodTemplateSpec {
		if template == nil {
			return nil
		}
		var requests deviceRequests
		for _, of := range template.Spec.ResourceClaims {
			requests.addAll(r.claim(t.ID.Namespace, of, nil))
			r.addToQuota(t, of, pods)
		}
		r.addExtended(&requests, template.Spec.Containers)
		r.addNamed(t, template.Spec.Containers, pods)
		t.hasOpenClaims = t.hasOpenClaims || requests.isOpen
		if len(requests.counts) == 0 {
			return template
		}
		own := *template
		own.Spec.Containers = withRequests(own.Spec.Containers, requests)
		return &own
	}
	t.Template, t.Worker = read(t.Template, 1), read(t.Worker, t.Workers)
}

// addToQuota adds the devices that so many new pods of a target get by a template of claims, as a
// ResourceQuota counts them. A claim that exists is counted already.
func (r *claimReader) addToQuota(t *Target, of corev1.PodResourceClaim, pods int) {
	if of.ResourceClaimTemplateName == nil || pods == 0 {
		return
	}
	if template := r.templates[podKey{t.ID.Namespace, *of.ResourceClaimTemplateName}]; template != nil {
		for name, n := range byClass(&template.Spec.Spec.Devices) {
			t.claim(name, n*pods)
		}
	}
}

// addNamed adds the extended resources that count devices and that so many new pods of a target
// request, as a ResourceQuota names them.
func (r *claimReader) addNamed(t *Target, containers []corev1.Container, pods int) {
	for i := range containers {
		for name, quantity := range containers[i].Resources.Limits {
			_, isNamed := r.extended[name]
			if n := wholeNumber(quantity); n > 0 && (isNamed || strings.HasPrefix(string(name), resourcev1.ResourceDeviceClassPrefix)) {
				t.claim(requestsPrefix+name, n*pods)
			}
		}
	}
}

// claim adds an amount of a resource that a replica uses of a ResourceQuota.
func (t *Target) claim(name corev1.ResourceName, n int) {
	if t.claimed == nil {
		t.claimed = map[corev1.ResourceName]int{}
	}
	t.claimed[name] = min(math.MaxInt32, t.claimed[name]+n)
}

// containers returns those of a pod that requests devices. Most pods request the same as others,
// and no other accelerators: they share one list.
func (r *claimReader) containers(own []corev1.Container, requests deviceRequests) []corev1.Container {
	if len(requests.counts) > 1 || len(sumOfRequests(own)) > 0 {
		return withRequests(own, requests)
	}
	for name, n := range requests.counts {
		key := sharedRequest{name, n, sumOfCompute(own)}
		if r.alone[key] == nil {
			r.alone[key] = withRequests(nil, requests)
			r.alone[key][0].Resources.Requests = key.list()
		}
		own = r.alone[key]
	}
	return own
}

// withRequests returns the containers with one more, which requests the devices of claims: these
// are a pod's for its whole life, as if a container had requested them.
func withRequests(containers []corev1.Container, requests deviceRequests) []corev1.Container {
	list := corev1.ResourceList{}
	for name, n := range requests.counts {
		list[name] = *resource.NewQuantity(int64(n), resource.DecimalSI)
	}
	return append(slices.Clip(containers), corev1.Container{Name: "claims", Resources: corev1.ResourceRequirements{Limits: list}})
}

// withoutMapped returns the containers without the requests of extended resources that a claim
// meets: its devices count in their place.
func withoutMapped(containers []corev1.Container, mapped []corev1.ContainerExtendedResourceRequest) []corev1.Container {
	containers = slices.Clone(containers)
	for _, row := range mapped {
		for i := range containers {
			if containers[i].Name == row.ContainerName {
				dropResource(&containers[i], corev1.ResourceName(row.ResourceName))
			}
		}
	}
	return containers
}

// dropResource removes a resource from a container, whose lists are shared.
func dropResource(container *corev1.Container, name corev1.ResourceName) {
	of := &container.Resources
	of.Limits, of.Requests = maps.Clone(of.Limits), maps.Clone(of.Requests)
	delete(of.Limits, name)
	delete(of.Requests, name)
}

// addExtended adds the requests of containers for extended resources that DeviceClasses define.
func (r *claimReader) addExtended(requests *deviceRequests, containers []corev1.Container) {
	for i := range containers {
		for name, quantity := range containers[i].Resources.Limits {
			class, isImplicit := strings.CutPrefix(string(name), resourcev1.ResourceDeviceClassPrefix)
			counted := r.extended[name]
			if isImplicit {
				var isKnown bool
				counted, isKnown = r.classes.counted(class, nil)
				requests.isOpen = requests.isOpen || !isKnown
			}
			if counted != "" {
				requests.add(counted, quantity.Value())
			}
		}
	}
}
