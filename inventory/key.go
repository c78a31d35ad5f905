package inventory

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wva-project/wva/fleet"
)

// Key names an object whatever the version of its kind.
type Key struct{ Group, Kind, Namespace, Name string }

// KeyOf returns the key of an object.
func KeyOf(u *unstructured.Unstructured) Key {
	kind := u.GroupVersionKind()
	return Key{kind.Group, kind.Kind, u.GetNamespace(), u.GetName()}
}

// TargetKey returns the key of a target.
func TargetKey(id fleet.TargetID) Key {
	return Key{groupOf(id.APIVersion), id.Kind, id.Namespace, id.Name}
}

// groupOf returns the group of "group/version", empty for the core's "v1".
func groupOf(apiVersion string) string {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return apiVersion
	}
	return version.Group
}

// String returns "Kind namespace/name", without the namespace if there is none.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// ScaledObjectKey returns the key of a ScaledObject.
func ScaledObjectKey(namespace, name string) Key {
	return Key{groupKEDA, kindScaledObject, namespace, name}
}

// HPAKey returns the key of an HPA.
func HPAKey(namespace, name string) Key { return Key{groupAutoscaling, kindHPA, namespace, name} }

func scaledJobKey(namespace, name string) Key {
	return Key{groupKEDA, kindScaledJob, namespace, name}
}
