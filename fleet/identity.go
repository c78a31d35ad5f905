package fleet

import (
	"cmp"
	"fmt"
	"strings"
)

// VariantID names a variant: the namespace and name of its ScaledObject, or of the object whose
// annotations declare it.
type VariantID struct{ Namespace, Name string }

// ModelID names a model: the namespace it is served in and the identifier users ask for, such as
// "meta-llama/Llama-3.1-8B-Instruct".
type ModelID struct{ Namespace, Name string }

// Accelerator is the name of an accelerator type, such as "H100" or "L40S". It is compared byte for
// byte.
type Accelerator string

// TargetID names the workload that a variant scales.
type TargetID struct {
	Namespace string `json:"namespace"`
	// APIVersion is the group and version of the kind, "apps/v1" for a Deployment.
	APIVersion string `json:"apiVersion,omitzero"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// String returns "namespace/name".
func (id VariantID) String() string { return id.Namespace + "/" + id.Name }

// Compare orders by namespace, then name.
func (id VariantID) Compare(other VariantID) int {
	if byNamespace := strings.Compare(id.Namespace, other.Namespace); byNamespace != 0 {
		return byNamespace
	}
	return strings.Compare(id.Name, other.Name)
}

// MarshalText encodes the identity as "namespace/name", the zero one as nothing.
func (id VariantID) MarshalText() ([]byte, error) {
	if id == (VariantID{}) {
		return nil, nil
	}
	return []byte(id.String()), nil
}

// UnmarshalText decodes "namespace/name".
func (id *VariantID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = VariantID{}
		return nil
	}
	namespace, name, found := strings.Cut(string(text), "/")
	if !found || namespace == "" || name == "" {
		return fmt.Errorf("variant %q: write it as namespace/name", text)
	}
	*id = VariantID{Namespace: namespace, Name: name}
	return nil
}

// String returns "namespace/name"; the name may itself hold slashes.
func (id ModelID) String() string { return id.Namespace + "/" + id.Name }

// Compare orders by namespace, then name.
func (id ModelID) Compare(other ModelID) int {
	if byNamespace := strings.Compare(id.Namespace, other.Namespace); byNamespace != 0 {
		return byNamespace
	}
	return strings.Compare(id.Name, other.Name)
}

// MarshalText encodes the identity as "namespace/name", the zero one as nothing.
func (id ModelID) MarshalText() ([]byte, error) {
	if id == (ModelID{}) {
		return nil, nil
	}
	return []byte(id.String()), nil
}

// UnmarshalText decodes "namespace/name", splitting at the first slash: a namespace holds none. The
// name may be empty: that of an invalid variant is, if its definition has no model.
func (id *ModelID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*id = ModelID{}
		return nil
	}
	namespace, name, found := strings.Cut(string(text), "/")
	if !found || namespace == "" {
		return fmt.Errorf("model %q: write it as namespace/name", text)
	}
	*id = ModelID{Namespace: namespace, Name: name}
	return nil
}

// Unversioned returns the target with the group of its kind instead of group and version: two
// objects may name one workload by different versions. The core's group is empty.
func (id TargetID) Unversioned() TargetID {
	group, _, grouped := strings.Cut(id.APIVersion, "/")
	if !grouped {
		group = "" // the core's "v1"
	}
	id.APIVersion = group
	return id
}

// String returns "Kind namespace/name".
func (id TargetID) String() string { return id.Kind + " " + id.Namespace + "/" + id.Name }

// Compare orders by namespace, kind, name and API version.
func (id TargetID) Compare(other TargetID) int {
	return cmp.Or(
		cmp.Compare(id.Namespace, other.Namespace),
		cmp.Compare(id.Kind, other.Kind),
		cmp.Compare(id.Name, other.Name),
		cmp.Compare(id.APIVersion, other.APIVersion),
	)
}
