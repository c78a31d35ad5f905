package inventory

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// gpuDriver is a driver of dynamic resource allocation whose devices are accelerators.
type gpuDriver struct {
	name string
	// counted is the resource by which the vendor's device plugin counts the same accelerators.
	counted corev1.ResourceName
	// product is the attribute with the product, and space replaces the spaces in it, as the
	// vendor's node label has them; empty if the resource names the type.
	product, space string
	// whole is the value of the attribute type of a whole accelerator, and slice that of a slice of
	// one; another value is no accelerator. Without them each device is a whole one.
	whole, slice string
	// profile is the attribute with the size of a slice.
	profile string
	// slices are the names of DeviceClasses of slices. That of whole ones has the driver's name.
	slices string
}

// gpuDrivers returns the drivers whose devices are counted.
func gpuDrivers() []gpuDriver {
	return []gpuDriver{
		{
			name: "gpu.nvidia.com", counted: nvidiaGPU, product: "productName", space: "-",
			whole: "gpu", slice: "mig", profile: "profile", slices: "mig.nvidia.com",
		},
		{
			name: "gpu.amd.com", counted: amdGPU, product: "productName", space: "_",
			whole: "amdgpu", slice: "amdgpu-partition", profile: "partitionProfile",
		},
		{name: "gpu.intel.com", counted: intelXe, product: "model", space: "_"},
		{name: "gaudi.intel.com", counted: gaudi},
	}
}

// DeviceAttributes returns the names of the attributes of devices that are read, with and without
// the domain of their driver.
func DeviceAttributes() (names []string) {
	for _, d := range gpuDrivers() {
		for _, name := range []string{"type", d.product, d.profile} {
			if name != "" {
				names = append(names, name, d.name+"/"+name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// drivers are the rows, built once: the driver of every device is looked up.
var drivers = gpuDrivers()

// driverOf returns the row of a driver; nil if its devices are no accelerators.
func driverOf(name string) *gpuDriver {
	if at := slices.IndexFunc(drivers, func(d gpuDriver) bool { return d.name == name }); at >= 0 {
		return &drivers[at]
	}
	return nil
}

// devicePrefix is that of resources that count the devices of a driver. No object can state one: a
// resource name has no colon.
const devicePrefix = "device:"

// unknownSlice is the product of a slice of which neither product nor size is known. A product that
// begins like this is a slice whose product is not known.
const unknownSlice = "-"

// resource returns the resource that counts devices of a product; the product is empty if it is not
// known.
func (d *gpuDriver) resource(product string) corev1.ResourceName {
	return corev1.ResourceName(devicePrefix + d.name + "/" + product)
}

// deviceOf returns the driver and the product whose devices a resource counts; nil if it counts
// none.
func deviceOf(name corev1.ResourceName) (d *gpuDriver, product string) {
	rest, isDevice := strings.CutPrefix(string(name), devicePrefix)
	if !isDevice {
		return nil, ""
	}
	driver, product, _ := strings.Cut(rest, "/")
	return driverOf(driver), product
}

// wholeOf returns the resource by which device plugins count the accelerators that a resource
// counts; false if it counts no devices, or slices.
func wholeOf(name corev1.ResourceName) (corev1.ResourceName, bool) {
	driver, product := deviceOf(name)
	if driver == nil || slices.ContainsFunc(productParts(product), isSharePart) {
		return "", false
	}
	return driver.counted, true
}

// isDevice reports whether a resource counts devices of dynamic resource allocation.
func isDevice(name corev1.ResourceName) bool { return strings.HasPrefix(string(name), devicePrefix) }

// productOf returns the product of a device, or the slice of a product, as node labels name them;
// false if it is no accelerator. A label that names the product of all devices of a node comes
// before the driver's name.
func (d *gpuDriver) productOf(device *resourcev1.Device, label string) (string, bool) {
	product := cmp.Or(label, d.labelled(d.text(device, d.product)))
	switch kind := d.text(device, "type"); {
	case d.whole == "" || kind == d.whole:
		return product, true
	case kind == d.slice:
		return d.sliceOf(product, d.text(device, d.profile)), true
	}
	return "", false
}

// labelled returns a product as the vendor's node label has it.
func (d *gpuDriver) labelled(product string) string { return strings.ReplaceAll(product, " ", d.space) }

// sliceOf returns the name of a slice of a product, as node labels and resources of the device
// plugin name it.
func (d *gpuDriver) sliceOf(product, profile string) string {
	switch {
	case profile == "":
		return unknownSlice
	case d.counted == nvidiaGPU:
		return product + "-MIG-" + strings.ReplaceAll(profile, "+", ".")
	}
	return product + "-" + strings.ToUpper(profile)
}

// text returns the text of an attribute of a device, by its name with or without the driver's
// domain.
func (d *gpuDriver) text(device *resourcev1.Device, name string) string {
	if name == "" {
		return ""
	}
	for _, key := range []string{name, d.name + "/" + name} {
		if value := device.Attributes[resourcev1.QualifiedName(key)].StringValue; value != nil {
			return *value
		}
	}
	return ""
}

// labelOf returns the product that a node's label names for the accelerators of a driver; empty if
// none does, or if it names slices or shares of one.
func (d *gpuDriver) labelOf(node *corev1.Node) string {
	if node == nil {
		return ""
	}
	for _, product := range products() {
		if value := node.Labels[product.label]; value != "" && slices.Contains(product.resources, d.counted) {
			if slices.ContainsFunc(productParts(value), isSharePart) {
				return ""
			}
			return value
		}
	}
	return ""
}
