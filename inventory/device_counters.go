package inventory

import (
	"cmp"
	"maps"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// counterKey names a counter of a pool, such as the memory of one GPU.
type counterKey struct{ set, counter string }

// counters are the parts of accelerators that are left for devices that share them.
type counters map[counterKey]resource.Quantity

func newCounters(ofPool []*resourcev1.ResourceSlice) counters {
	left := counters{}
	for _, slice := range ofPool {
		for _, set := range slice.Spec.SharedCounters {
			for name, counter := range set.Counters {
				left[counterKey{set.Name, name}] = counter.Value.DeepCopy()
			}
		}
	}
	return left
}

// consume takes the counters of a device.
func (left counters) consume(device *resourcev1.Device) {
	for _, part := range device.ConsumesCounters {
		for name, counter := range part.Counters {
			key := counterKey{part.CounterSet, name}
			if value, found := left[key]; found {
				value = value.DeepCopy() // large numbers are shared by copies
				value.Sub(counter.Value)
				left[key] = value
			}
		}
	}
}

// fit reports whether the counters of a device are left.
func (left counters) fit(device *resourcev1.Device) bool {
	for _, part := range device.ConsumesCounters {
		for name, counter := range part.Counters {
			if value, found := left[counterKey{part.CounterSet, name}]; !found || value.Cmp(counter.Value) < 0 {
				return false
			}
		}
	}
	return true
}

// fitting returns how many of the devices can be allocated together, one by one by name. Others of
// the same accelerator are assumed to stay free.
func (left counters) fitting(devices []*resourcev1.Device) (n int) {
	left = maps.Clone(left)
	for _, device := range sorted(devices, func(a, b *resourcev1.Device) int { return cmp.Compare(a.Name, b.Name) }) {
		if left.fit(device) {
			left.consume(device)
			n++
		}
	}
	return n
}
