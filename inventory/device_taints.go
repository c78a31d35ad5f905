package inventory

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// decodeDeviceTaintRule reads the rule of an administrator that taints devices; nothing of one that
// keeps no pods from them.
func decodeDeviceTaintRule(u *unstructured.Unstructured) (Objects, error) {
	rule := new(resourcev1.DeviceTaintRule)
	if err := convert(u.Object, rule); err != nil || !isDeviceVersion(u) || !blocks(rule.Spec.Taint) {
		return Objects{}, err
	}
	return Objects{DeviceTaintRules: []*resourcev1.DeviceTaintRule{rule}}, nil
}

// blocks reports whether a taint keeps pods from a device. A claim that tolerates it is not counted
// on.
func blocks(taint resourcev1.DeviceTaint) bool {
	return taint.Effect == resourcev1.DeviceTaintEffectNoSchedule || taint.Effect == resourcev1.DeviceTaintEffectNoExecute
}

// deviceTaints are the rules that taint devices, as keys of the devices that they select: an empty
// part selects any.
type deviceTaints map[deviceKey]bool

func (o Objects) deviceTaints() deviceTaints {
	taints := deviceTaints{}
	text := func(part *string) string {
		if part == nil {
			return ""
		}
		return *part
	}
	for _, rule := range o.DeviceTaintRules {
		var selected deviceKey
		if of := rule.Spec.DeviceSelector; of != nil {
			selected = deviceKey{text(of.Driver), text(of.Pool), text(of.Device)}
		}
		taints[selected] = true
	}
	return taints
}

// block reports whether a taint of its own or of a rule keeps pods from a device.
func (t deviceTaints) block(id deviceKey, device *resourcev1.Device) bool {
	switch {
	case slices.ContainsFunc(device.Taints, blocks):
		return true
	case len(t) == 0:
		return false
	}
	for parts := range 1 << 3 { // each of the three is named or not
		selected := id
		if parts&1 != 0 {
			selected.driver = ""
		}
		if parts&2 != 0 {
			selected.pool = ""
		}
		if parts&4 != 0 {
			selected.device = ""
		}
		if t[selected] {
			return true
		}
	}
	return false
}
