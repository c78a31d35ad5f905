package inventory

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wva-project/wva/fleet"
)

// deviceKey names a device, as an allocation does.
type deviceKey struct{ driver, pool, device string }

// deviceCounts is the accelerators that drivers of dynamic resource allocation publish.
type deviceCounts struct {
	// resources are the resource that counts a device, and its node
	resources map[deviceKey]allocationKey
	// allocatable and allocated are the numbers of devices, the former by node
	allocatable map[string]map[corev1.ResourceName]int
	allocated   map[allocationKey]int
	// stated are the drivers that publish devices on a node, be it none
	stated map[string][]*gpuDriver
	// closed is why the scheduler allocates no device of a node
	closed map[string]string
	// shared are the resources that count devices that are on no single node
	shared map[corev1.ResourceName]bool
}

// Why no further device of a node is allocated.
const (
	closedByIncompletePool = "incomplete ResourceSlices"
	closedByUnseenClaim    = "unseen ResourceClaims"
)

const kindResourceSlice = "ResourceSlice"

// decodeResourceSlice reads the devices of a driver; nothing if they are no accelerators, or in a
// version before v1.
func decodeResourceSlice(u *unstructured.Unstructured) (Objects, error) {
	if !isDeviceVersion(u) {
		return Objects{}, nil
	}
	slice := new(resourcev1.ResourceSlice)
	if err := convert(u.Object, slice); err != nil {
		return Objects{}, err
	}
	if driverOf(slice.Spec.Driver) == nil {
		return Objects{}, nil
	}
	return Objects{ResourceSlices: []*resourcev1.ResourceSlice{slice}}, nil
}

// devicePool is the ResourceSlices of the latest generation of a pool, as far as one node sees
// them: the driver of another node cannot replace them by its own in a pool of the same name.
type devicePool struct {
	driver *gpuDriver
	name   string
	node   string                      // empty if the slices are not of a single node
	slices []*resourcev1.ResourceSlice // by name
}

// devicePools returns the pools, sorted.
func (o Objects) devicePools() []devicePool {
	byName := func(a, b *resourcev1.ResourceSlice) int {
		return cmp.Or(
			cmp.Compare(a.Spec.Driver, b.Spec.Driver), cmp.Compare(a.Spec.Pool.Name, b.Spec.Pool.Name), cmp.Compare(nodeOf(a), nodeOf(b)),
			-cmp.Compare(a.Spec.Pool.Generation, b.Spec.Pool.Generation), cmp.Compare(a.Name, b.Name),
		)
	}
	var pools []devicePool
	for _, slice := range sorted(o.ResourceSlices, byName) {
		last := len(pools) - 1
		isNew := last < 0 || pools[last].driver.name != slice.Spec.Driver || pools[last].name != slice.Spec.Pool.Name || pools[last].node != nodeOf(slice)
		switch {
		case isNew:
			pools = append(pools, devicePool{driverOf(slice.Spec.Driver), slice.Spec.Pool.Name, nodeOf(slice), []*resourcev1.ResourceSlice{slice}})
		case pools[last].slices[0].Spec.Pool.Generation == slice.Spec.Pool.Generation:
			pools[last].slices = append(pools[last].slices, slice)
		}
	}
	return pools
}

// nodeOf returns the node of a ResourceSlice; empty if it is not of a single one.
func nodeOf(slice *resourcev1.ResourceSlice) string {
	if slice.Spec.NodeName == nil {
		return ""
	}
	return *slice.Spec.NodeName
}

// isComplete reports whether all of the pool is seen, and each name is that of one device: else the
// scheduler allocates none of it.
func (p *devicePool) isComplete() bool {
	names := map[string]bool{}
	for _, slice := range p.slices {
		if slice.Spec.Pool.ResourceSliceCount != int64(len(p.slices)) {
			return false
		}
		for i := range slice.Spec.Devices {
			if names[slice.Spec.Devices[i].Name] {
				return false
			}
			names[slice.Spec.Devices[i].Name] = true
		}
	}
	return true
}

// countDevices counts the devices of the nodes, of which some are allocated.
func (o Objects) countDevices(allocated map[deviceKey]bool, nodes map[string]*corev1.Node) deviceCounts {
	c := deviceCounts{
		resources: make(map[deviceKey]allocationKey, len(allocated)), allocatable: map[string]map[corev1.ResourceName]int{}, allocated: map[allocationKey]int{},
		stated: map[string][]*gpuDriver{}, closed: map[string]string{}, shared: map[corev1.ResourceName]bool{},
	}
	pools, taints := o.devicePools(), o.deviceTaints()
	for i := range pools {
		pool := &pools[i]
		isComplete := pool.isComplete()
		for _, slice := range pool.slices {
			for _, node := range nodesOf(slice) {
				c.stated[node] = append(c.stated[node], pool.driver)
				if !isComplete {
					c.closed[node] = closedByIncompletePool
				}
			}
		}
		if isComplete {
			c.addPool(pool, allocated, nodes, taints)
		}
	}
	return c
}

// nodesOf returns the nodes whose devices are in a ResourceSlice, each once.
func nodesOf(slice *resourcev1.ResourceSlice) []string {
	if name := nodeOf(slice); name != "" {
		return []string{name}
	}
	var names []string
	for i := range slice.Spec.Devices {
		if name := slice.Spec.Devices[i].NodeName; name != nil {
			names = append(names, *name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addPool adds the devices of a pool. Devices that share an accelerator count as far as those of
// their type fit beside the allocated ones.
func (c *deviceCounts) addPool(pool *devicePool, allocated map[deviceKey]bool, nodes map[string]*corev1.Node, taints deviceTaints) {
	labels := pool.labels(nodes)
	left := newCounters(pool.slices)
	parts := map[allocationKey][]*resourcev1.Device{}
	for device, node := range pool.devices() {
		id := deviceKey{pool.driver.name, pool.name, device.Name}
		if allocated[id] {
			left.consume(device)
		}
		product, isGPU := pool.driver.productOf(device, labels[node])
		key := allocationKey{node, pool.driver.resource(product)}
		switch {
		case !isGPU:
			continue
		case node == "":
			c.shared[key.resource] = true
			continue
		case allocated[id]:
			c.allocated[key]++
			c.allow(key, 1)
		case taints.block(id, device):
			c.allow(key, 0)
		case len(device.ConsumesCounters) > 0:
			parts[key] = append(parts[key], device)
		default:
			c.allow(key, 1)
		}
		c.resources[id] = key
	}
	for key, devices := range parts {
		c.allow(key, left.fitting(devices))
	}
}

// devices yields the devices of the pool, each with its node; the node is empty if it is not that
// of a single one.
func (p *devicePool) devices() iter.Seq2[*resourcev1.Device, string] {
	return func(yield func(*resourcev1.Device, string) bool) {
		for _, slice := range p.slices {
			for i := range slice.Spec.Devices {
				device, node := &slice.Spec.Devices[i], p.node
				if node == "" && device.NodeName != nil {
					node = *device.NodeName
				}
				if !yield(device, node) {
					return
				}
			}
		}
	}
}

// labels returns the products that the labels of nodes name, without those of nodes that have
// devices of several products.
func (p *devicePool) labels(nodes map[string]*corev1.Node) map[string]string {
	labels, products := map[string]string{}, map[string]string{}
	for device, node := range p.devices() {
		product := p.driver.text(device, p.driver.product)
		first, isSeen := products[node]
		switch {
		case !isSeen:
			products[node], labels[node] = product, p.driver.labelOf(nodes[node])
		case product != first:
			labels[node] = ""
		}
	}
	return labels
}

// allow adds allocatable devices.
func (c *deviceCounts) allow(key allocationKey, n int) {
	if c.allocatable[key.node] == nil {
		c.allocatable[key.node] = map[corev1.ResourceName]int{}
	}
	c.allocatable[key.node][key.resource] += n
}

// node returns a node with its devices as allocatable resources.
func (c *deviceCounts) node(node *corev1.Node) *corev1.Node {
	stated := c.stated[node.Name]
	if len(stated) == 0 {
		return node
	}
	own := *node
	own.Status.Allocatable = maps.Clone(node.Status.Allocatable)
	if own.Status.Allocatable == nil {
		own.Status.Allocatable = corev1.ResourceList{}
	}
	for _, driver := range stated { // none but these
		if _, isStated := own.Status.Allocatable[driver.counted]; !isStated {
			own.Status.Allocatable[driver.counted] = resource.Quantity{}
		}
	}
	for name, n := range c.allocatable[node.Name] {
		own.Status.Allocatable[name] = *resource.NewQuantity(int64(n), resource.DecimalSI)
	}
	return &own
}

// sharedTypes returns the accelerator types of devices that are on no single node: the nodes are
// not their limit.
func (c *deviceCounts) sharedTypes(options Options) map[fleet.Accelerator]bool {
	types := map[fleet.Accelerator]bool{}
	for name := range c.shared {
		types[options.deviceType(name)] = true
	}
	return types
}
