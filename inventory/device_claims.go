package inventory

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The kinds of dynamic resource allocation beside ResourceSlices.
const (
	kindResourceClaim         = "ResourceClaim"
	kindResourceClaimTemplate = "ResourceClaimTemplate"
	kindDeviceClass           = "DeviceClass"
	kindDeviceTaintRule       = "DeviceTaintRule"

	groupResource = "resource.k8s.io"
)

// isDeviceVersion reports whether an object of dynamic resource allocation is in the version that
// is read; fields of earlier ones are at other places.
func isDeviceVersion(u *unstructured.Unstructured) bool {
	return u.GetAPIVersion() == resourcev1.SchemeGroupVersion.String()
}

func decodeResourceClaim(u *unstructured.Unstructured) (Objects, error) {
	claim := new(resourcev1.ResourceClaim)
	if err := convert(u.Object, claim); err != nil || !isDeviceVersion(u) {
		return Objects{}, err
	}
	trimClaim(&claim.Spec.Devices)
	return Objects{ResourceClaims: []*resourcev1.ResourceClaim{claim}}, nil
}

func decodeResourceClaimTemplate(u *unstructured.Unstructured) (Objects, error) {
	template := new(resourcev1.ResourceClaimTemplate)
	if err := convert(u.Object, template); err != nil || !isDeviceVersion(u) {
		return Objects{}, err
	}
	trimClaim(&template.Spec.Spec.Devices)
	return Objects{ResourceClaimTemplates: []*resourcev1.ResourceClaimTemplate{template}}, nil
}

func decodeDeviceClass(u *unstructured.Unstructured) (Objects, error) {
	class := new(resourcev1.DeviceClass)
	if err := convert(u.Object, class); err != nil || !isDeviceVersion(u) {
		return Objects{}, err
	}
	class.Spec.Selectors = trimmed(class.Spec.Selectors)
	return Objects{DeviceClasses: []*resourcev1.DeviceClass{class}}, nil
}

// deviceRequests is the accelerators of a claim, by the resource that counts them.
type deviceRequests struct {
	counts map[corev1.ResourceName]int
	// isOpen is true if there may be more: a request has no number, or its devices are not known
	isOpen bool
}

func (r *deviceRequests) add(name corev1.ResourceName, n int64) {
	if r.counts == nil {
		r.counts = map[corev1.ResourceName]int{}
	}
	r.counts[name] = int(min(math.MaxInt32, int64(r.counts[name])+max(0, min(n, math.MaxInt32))))
}

func (r *deviceRequests) addAll(more deviceRequests) {
	for name, n := range more.counts {
		r.add(name, int64(n))
	}
	r.isOpen = r.isOpen || more.isOpen
}

func (r *deviceRequests) total() (total int) {
	for _, n := range r.counts {
		total = min(math.MaxInt32, total+n)
	}
	return total
}

// deviceClasses are the DeviceClasses by name.
type deviceClasses map[string]*resourcev1.DeviceClass

// requests returns the accelerators that a claim requests: of alternatives the most. One with
// administrative access gets none of its own.
func (c deviceClasses) requests(claim *resourcev1.DeviceClaim) (all deviceRequests) {
	for i := range claim.Requests {
		request := &claim.Requests[i]
		if exactly := request.Exactly; exactly != nil && (exactly.AdminAccess == nil || !*exactly.AdminAccess) {
			all.addAll(c.request(&resourcev1.DeviceSubRequest{
				DeviceClassName: exactly.DeviceClassName, Selectors: exactly.Selectors, AllocationMode: exactly.AllocationMode, Count: exactly.Count,
			}))
		}
		all.addAll(c.mostOf(request.FirstAvailable))
	}
	return all
}

// byClass returns the devices of a claim by the names of their classes in a ResourceQuota, which
// counts each alternative, and for all devices of a node the most that a claim can get.
func byClass(claim *resourcev1.DeviceClaim) map[corev1.ResourceName]int {
	devices := map[corev1.ResourceName]int{}
	add := func(class string, mode resourcev1.DeviceAllocationMode, count int64) {
		if mode == resourcev1.DeviceAllocationModeAll {
			count = resourcev1.AllocationResultsMaxSize
		}
		count = min(cmp.Or(count, 1), math.MaxInt32)
		if name := corev1.ResourceName(class + corev1.ResourceClaimsPerClass); count > 0 {
			devices[name] = min(math.MaxInt32, devices[name]+int(count))
		}
	}
	for i := range claim.Requests {
		if exactly := claim.Requests[i].Exactly; exactly != nil {
			add(exactly.DeviceClassName, exactly.AllocationMode, exactly.Count)
		}
		for _, one := range claim.Requests[i].FirstAvailable {
			add(one.DeviceClassName, one.AllocationMode, one.Count)
		}
	}
	return devices
}

// mostOf returns the most accelerators that one of several alternatives requests. If they differ in
// their devices, the type is not known.
func (c deviceClasses) mostOf(alternatives []resourcev1.DeviceSubRequest) (most deviceRequests) {
	var names []corev1.ResourceName
	for i := range alternatives {
		one := c.request(&alternatives[i])
		names = slices.AppendSeq(names, maps.Keys(one.counts))
		one.isOpen = one.isOpen || most.isOpen
		if one.total() < most.total() {
			one.counts = most.counts
		}
		most = one
	}
	if len(names) > 0 && slices.ContainsFunc(names, func(name corev1.ResourceName) bool { return name != names[0] }) {
		driver, _ := deviceOf(names[0])
		most.counts = map[corev1.ResourceName]int{driver.resource(""): most.total()}
	}
	return most
}

// request returns the accelerators of one request.
func (c deviceClasses) request(request *resourcev1.DeviceSubRequest) (r deviceRequests) {
	counted, isKnown := c.counted(request.DeviceClassName, request.Selectors)
	switch {
	case !isKnown || counted != "" && request.AllocationMode == resourcev1.DeviceAllocationModeAll:
		r.isOpen = true
	case counted != "":
		r.add(counted, cmp.Or(request.Count, 1))
	}
	return r
}

// counted returns the resource that counts the devices of a class that selectors narrow; empty if
// they are no accelerators, and false if that is not known.
func (c deviceClasses) counted(name string, selectors []resourcev1.DeviceSelector) (corev1.ResourceName, bool) {
	var facts deviceFacts
	if class := c[name]; class != nil {
		facts.read(class.Spec.Selectors)
	}
	facts.read(selectors)
	driver := driverOf(cmp.Or(facts.driver, facts.domain))
	isSlice := driver != nil && driver.slice != "" && facts.attributes["type"] == driver.slice
	if driver == nil && facts.driver == "" { // by the names that the drivers' own charts use
		if at := slices.IndexFunc(drivers, func(d gpuDriver) bool { return name == d.name || name != "" && name == d.slices }); at >= 0 {
			driver, isSlice = &drivers[at], name == drivers[at].slices
		}
	}
	switch {
	case driver == nil:
		return "", facts.driver != ""
	case isSlice:
		product := driver.labelled(facts.attributes[driver.product])
		return driver.resource(driver.sliceOf(product, facts.attributes[driver.profile])), true
	}
	return driver.resource(driver.labelled(facts.attributes[driver.product])), true
}

// extended returns the extended resources by which pods may request accelerators of a class in
// place of a claim, and the resources that count these. Names that count accelerators anyway are
// left out, and those that follow from the name of a class.
func (c deviceClasses) extended() map[corev1.ResourceName]corev1.ResourceName {
	names := map[corev1.ResourceName]corev1.ResourceName{}
	for class, object := range c {
		own := object.Spec.ExtendedResourceName
		if own == nil || isGPU(corev1.ResourceName(*own)) {
			continue
		}
		name := corev1.ResourceName(*own)
		counted, _ := c.counted(class, nil)
		// of several classes the same one in any order
		if other, isNamed := names[name]; counted != "" && (!isNamed || counted < other) {
			names[name] = counted
		}
	}
	return names
}
