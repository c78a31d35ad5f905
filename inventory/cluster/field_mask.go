package cluster

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/wva-project/wva/inventory"
)

// fieldMask is the fields of an object that are kept when it is read, by name. A nil mask keeps the
// whole field; of a list each element has the mask. Decode sees these fields only: a field that it
// is to read has to be added here.
type fieldMask map[string]fieldMask

// cut removes the fields that are not in the mask.
func (s fieldMask) cut(fields map[string]any) {
	for name, value := range fields {
		inner, kept := s[name]
		switch value := value.(type) {
		case map[string]any:
			if kept && inner != nil {
				inner.cut(value)
			}
		case []any:
			if kept && inner != nil {
				inner.cutAll(value)
			}
		}
		if !kept {
			delete(fields, name)
		}
	}
}

func (s fieldMask) cutAll(elements []any) {
	for _, element := range elements {
		if fields, isObject := element.(map[string]any); isObject {
			s.cut(fields)
		}
	}
}

// fieldsOf returns a mask that keeps whole fields.
func fieldsOf(names string) fieldMask {
	s := fieldMask{}
	for name := range strings.FieldsSeq(names) {
		s[name] = nil
	}
	return s
}

// with returns the mask with one more field, which has a mask of its own.
func (s fieldMask) with(name string, inner fieldMask) fieldMask {
	s[name] = inner
	return s
}

// objectFields is a mask with the identity that every object has.
func objectFields(spec, status fieldMask) fieldMask {
	metadata := fieldsOf("name namespace uid creationTimestamp deletionTimestamp labels annotations").
		with("ownerReferences", fieldsOf("apiVersion kind name uid controller"))
	whole := fieldsOf("apiVersion kind").with("metadata", metadata)
	if spec != nil {
		whole["spec"] = spec
	}
	if status != nil {
		whole["status"] = status
	}
	return whole
}

func podFields() fieldMask {
	container := fieldsOf("name resources restartPolicy")
	stopped := fieldsOf("name restartCount").
		with("state", fieldMask{"waiting": fieldsOf("reason"), "terminated": fieldsOf("reason exitCode")})
	return objectFields(
		fieldsOf("nodeName nodeSelector tolerations resourceClaims overhead priority resources").with("affinity", fieldsOf("nodeAffinity")).
			with("containers", container).with("initContainers", container),
		fieldsOf("phase reason resourceClaimStatuses extendedResourceClaimStatus").
			with("conditions", fieldsOf("type status reason lastTransitionTime")).
			with("containerStatuses", stopped).with("initContainerStatuses", stopped),
	)
}

func nodeFields() fieldMask {
	return objectFields(fieldsOf("unschedulable taints"), fieldsOf("allocatable").
		with("capacity", fieldsOf("cpu memory")).with("conditions", fieldsOf("type status")))
}

func nodePoolFields() fieldMask {
	template := fieldMask{"metadata": fieldsOf("labels"), "spec": fieldsOf("requirements")}
	return objectFields(fieldsOf("limits replicas").with("template", template), nil)
}

func capacityQuotaFields() fieldMask {
	return objectFields(fieldsOf("selector limits"), fieldMask{"conditions": fieldsOf("type status")})
}

// sliceFields is the mask of ResourceSlices. Of the attributes of a device, those that name its
// type are kept.
func sliceFields() fieldMask {
	device := fieldsOf("name nodeName taints consumesCounters").with("attributes", fieldsOf(strings.Join(inventory.DeviceAttributes(), " ")))
	return objectFields(fieldsOf("driver pool nodeName sharedCounters").with("devices", device), nil)
}

func deviceClassFields() fieldMask {
	return objectFields(fieldsOf("selectors extendedResourceName"), nil)
}

func taintRuleFields() fieldMask { return objectFields(fieldsOf("deviceSelector taint"), nil) }

func claimFields() fieldMask {
	allocation := fieldMask{"devices": fieldMask{"results": fieldsOf("driver pool device adminAccess")}}
	return objectFields(fieldMask{"devices": fieldMask{"requests": requestFields()}}, fieldMask{"allocation": allocation})
}

func claimTemplateFields() fieldMask {
	return objectFields(fieldMask{"spec": fieldMask{"devices": fieldMask{"requests": requestFields()}}}, nil)
}

func requestFields() fieldMask {
	request := fieldsOf("deviceClassName selectors allocationMode count adminAccess")
	return fieldMask{"exactly": request, "firstAvailable": request}
}

func quotaFields() fieldMask {
	return objectFields(fieldsOf("scopes scopeSelector"), fieldsOf("hard used"))
}

func clusterQueueFields() fieldMask {
	flavor := fieldsOf("name").with("resources", fieldsOf("name nominalQuota borrowingLimit lendingLimit"))
	usage := fieldsOf("name").with("resources", fieldsOf("name total"))
	return objectFields(
		fieldsOf("cohort cohortName stopPolicy").with("resourceGroups", fieldMask{"flavors": flavor}),
		fieldMask{"flavorsReservation": usage, "flavorsUsage": usage},
	)
}

func localQueueFields() fieldMask { return objectFields(fieldsOf("clusterQueue stopPolicy"), nil) }

func flavorFields() fieldMask { return objectFields(fieldsOf("nodeLabels"), nil) }

func cohortFields() fieldMask { return objectFields(fieldsOf("parentName"), nil) }

func configMapFields() fieldMask { return objectFields(nil, nil).with("data", nil) }

// scaledObjectFields is the mask of ScaledObjects and ScaledJobs. KEDA writes the rest of the
// status at every poll.
func scaledObjectFields() fieldMask {
	return objectFields(nil, fieldsOf("conditions hpaName externalMetricNames scaleTargetGVKR scaleTargetKind pausedReplicaCount")).with("spec", nil)
}

func hpaFields() fieldMask {
	return objectFields(fieldsOf("scaleTargetRef minReplicas maxReplicas"), fieldMask{"conditions": fieldsOf("type status reason message")})
}

func namespaceFields() fieldMask { return objectFields(nil, nil) }

// targetFields is the mask of a scale target of a kind that is decoded by name. The place of the
// pod template depends on the kind.
//
// The template is kept whether a variant names the workload or not: a ScaledObject that comes later
// would need it at once. So each watched Deployment needs 5 KB (BenchmarkDeploymentMemory).
func targetFields() fieldMask {
	template := templateFields()
	return furtherTargetFields().with("spec", fieldsOf("replicas").with("template", template).
		with("leaderWorkerTemplate", fieldsOf("size").with("leaderTemplate", template).with("workerTemplate", template)))
}

// furtherTargetFields is the mask of a scale target of any other kind. The number of replicas may
// be anywhere in its spec.
func furtherTargetFields() fieldMask {
	return objectFields(nil, fieldsOf("conditions replicas readyReplicas updatedReplicas")).with("spec", nil)
}

// templateFields is the mask of a pod template: the labels that are read, its demands on nodes, and
// the command line of its engine.
func templateFields() fieldMask {
	spec := fieldsOf("nodeSelector tolerations resourceClaims resources").
		with("affinity", fieldsOf("nodeAffinity")).
		with("containers", fieldsOf("name resources restartPolicy command args").with("env", fieldsOf("name value"))).
		with("initContainers", fieldsOf("name resources restartPolicy"))
	labels := fieldsOf(strings.Join(inventory.TemplateLabels(), " "))
	return fieldMask{"metadata": fieldMask{"labels": labels}, "spec": spec}
}

// strip removes the fields that are not in the mask, and the annotations that are neither KEDA's
// nor WVA's.
func strip(u *unstructured.Unstructured, s fieldMask) {
	s.cut(u.Object)
	metadata, _ := u.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for name := range annotations {
		if !strings.HasPrefix(name, "autoscaling.keda.sh/") && !strings.HasPrefix(name, "scaledobject.keda.sh/") && !strings.HasPrefix(name, "wva.dev/") {
			delete(annotations, name)
		}
	}
	keepExtended(u)
}

// keepExtended keeps the resources that are counted. Accelerators are extended resources: their
// names contain a slash, and a request for one equals its limit, without which there is none.
// Processors and memory are those of the request, or of the limit without one. Of a pod without
// accelerators, the processors and the memory are kept as its overhead, and the containers are not;
// those of a template stay, since one of them is the engine.
func keepExtended(u *unstructured.Unstructured) {
	spec, _ := u.Object["spec"].(map[string]any)
	if u.GetKind() == pods.kind {
		if !trimContainers(spec) && spec["resourceClaims"] == nil {
			requests := computeRequests(spec)
			for _, name := range []string{"containers", "initContainers", "nodeSelector", "tolerations", "affinity", "overhead", "resources"} {
				delete(spec, name)
			}
			if len(requests) > 0 {
				spec["overhead"] = requests
			}
		}
		return
	}
	group, _ := spec["leaderWorkerTemplate"].(map[string]any)
	for _, value := range []any{spec["template"], group["leaderTemplate"], group["workerTemplate"]} {
		template, _ := value.(map[string]any)
		pod, _ := template["spec"].(map[string]any)
		trimContainers(pod)
	}
}

// trimContainers trims the resources of a pod's containers, and reports whether any requests
// accelerators.
func trimContainers(pod map[string]any) (takesExtended bool) {
	for _, list := range []string{"containers", "initContainers"} {
		containers, _ := pod[list].([]any)
		for _, element := range containers {
			container, _ := element.(map[string]any)
			takesExtended = trimResources(container) || takesExtended
		}
	}
	return takesExtended
}

// trimResources trims a container's resources, and reports whether accelerators are among them.
func trimResources(container map[string]any) (takesExtended bool) {
	resources, _ := container["resources"].(map[string]any)
	limits, _ := resources["limits"].(map[string]any)
	requests, _ := resources["requests"].(map[string]any)
	maps.DeleteFunc(requests, func(name string, _ any) bool { return name != "cpu" && name != "memory" })
	maps.DeleteFunc(limits, func(name string, _ any) bool {
		isExtended, isRequested := strings.Contains(name, "/"), requests[name] != nil
		takesExtended = takesExtended || isExtended
		return !isExtended && (isRequested || name != "cpu" && name != "memory")
	})
	if len(limits)+len(requests) == 0 {
		delete(container, "resources")
	}
	return takesExtended
}
