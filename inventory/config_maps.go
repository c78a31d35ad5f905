package inventory

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// The label of the ConfigMaps that are read as configuration.
const (
	ConfigLabel      = "wva.dev/config"
	ConfigLabelValue = "true"
)

const kindConfigMap = "ConfigMap"

// mostConfigBytes is the most bytes of data of a ConfigMap that is read as configuration. The API
// server allows 1 MiB, which a tenant could have parsed again and again.
const mostConfigBytes = 64 << 10

// ConfigMap is a ConfigMap with configuration.
type ConfigMap struct {
	Namespace, Name string
	UID             types.UID
	Data            map[string]string
	// TooLarge is true if it has too much data, of which none is kept.
	TooLarge bool
}

// decodeConfigMap reads the ConfigMap of Cluster Autoscaler, and those with the label of
// configuration; nothing of any other.
func decodeConfigMap(u *unstructured.Unstructured) (Objects, error) {
	switch {
	case u.GetName() == AutoscalerStatusName && u.GetNamespace() == AutoscalerStatusNamespace:
		return decodeAutoscalerStatus(u)
	case u.GetLabels()[ConfigLabel] != ConfigLabelValue:
		return Objects{}, nil
	}
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	if err != nil {
		return Objects{}, err
	}
	size := 0
	for key, text := range data {
		size += len(key) + len(text)
	}
	m := ConfigMap{Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), Data: data}
	if size > mostConfigBytes {
		m.Data, m.TooLarge = nil, true
	}
	return Objects{ConfigMaps: []ConfigMap{m}}, nil
}
