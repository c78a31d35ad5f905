package inventory

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

// The kinds that are read by name. Any other kind is read if it has spec.replicas, as kinds with a
// scale subresource usually do.
const (
	kindScaledObject    = "ScaledObject"
	kindScaledJob       = "ScaledJob"
	kindHPA             = "HorizontalPodAutoscaler"
	kindPod             = "Pod"
	kindNode            = "Node"
	kindDeployment      = "Deployment"
	kindReplicaSet      = "ReplicaSet"
	kindStatefulSet     = "StatefulSet"
	kindLeaderWorkerSet = "LeaderWorkerSet"
	kindPodClique       = "PodClique" // of Grove

	groupKEDA         = "keda.sh"
	groupApps         = "apps"
	groupAutoscaling  = "autoscaling"
	groupLeaderWorker = "leaderworkerset.x-k8s.io"
)

// DecodeRemedy is the remedy for an object that cannot be decoded. Errors of Decode end with it.
const DecodeRemedy = "write it as kubectl get -o yaml prints it"

// Decode returns one object as the tables need it; nothing if its kind is not read. The object is
// shared, not copied. The error names the object and ends with the remedy.
func Decode(u *unstructured.Unstructured) (Objects, error) {
	kind := u.GroupVersionKind().GroupKind()
	read := decoder(kind)
	if read == nil && !hasReplicas(u) {
		return Objects{}, nil
	}
	if u.GetName() == "" {
		return Objects{}, fmt.Errorf("a %s whose metadata.name is missing or not a text; %s", u.GetKind(), DecodeRemedy)
	}
	if read == nil {
		read = decodeAnyTarget
	}
	objects, err := read(u)
	if err != nil {
		return Objects{}, fmt.Errorf("%s: %w; %s", KeyOf(u), err, DecodeRemedy)
	}
	return objects, nil
}

// Decodes reports whether objects of a kind are read by name. Of any other kind, only
// spec.replicas, spec.template and status.selector are.
func Decodes(kind schema.GroupKind) bool { return decoder(kind) != nil }

// decoder returns the decoder of a kind that is known by name; nil for any other.
func decoder(kind schema.GroupKind) func(*unstructured.Unstructured) (Objects, error) {
	switch kind {
	case schema.GroupKind{Group: groupKEDA, Kind: kindScaledObject}:
		return decodeScaledObject
	case schema.GroupKind{Group: groupKEDA, Kind: kindScaledJob}:
		return decodeScaledJob
	case schema.GroupKind{Group: groupAutoscaling, Kind: kindHPA}:
		return decodeHPA
	case schema.GroupKind{Kind: kindPod}:
		return decodePod
	case schema.GroupKind{Kind: kindNode}:
		return decodeNode
	case schema.GroupKind{Kind: kindResourceQuota}:
		return decodeResourceQuota
	case schema.GroupKind{Group: groupKarpenter, Kind: kindNodePool}:
		return decodeNodePool
	case schema.GroupKind{Group: groupNodeAutoscaling, Kind: kindCapacityQuota}:
		return decodeCapacityQuota
	case schema.GroupKind{Group: groupKueue, Kind: kindClusterQueue}:
		return decodeClusterQueue
	case schema.GroupKind{Group: groupKueue, Kind: kindLocalQueue}:
		return decodeLocalQueue
	case schema.GroupKind{Group: groupKueue, Kind: kindResourceFlavor}:
		return decodeResourceFlavor
	case schema.GroupKind{Group: groupKueue, Kind: kindCohort}:
		return decodeCohort
	case schema.GroupKind{Kind: kindConfigMap}:
		return decodeConfigMap
	case schema.GroupKind{Group: groupResource, Kind: kindResourceSlice}:
		return decodeResourceSlice
	case schema.GroupKind{Group: groupResource, Kind: kindResourceClaim}:
		return decodeResourceClaim
	case schema.GroupKind{Group: groupResource, Kind: kindResourceClaimTemplate}:
		return decodeResourceClaimTemplate
	case schema.GroupKind{Group: groupResource, Kind: kindDeviceClass}:
		return decodeDeviceClass
	case schema.GroupKind{Group: groupResource, Kind: kindDeviceTaintRule}:
		return decodeDeviceTaintRule
	case schema.GroupKind{Group: groupApps, Kind: kindDeployment},
		schema.GroupKind{Group: groupApps, Kind: kindReplicaSet},
		schema.GroupKind{Group: groupApps, Kind: kindStatefulSet}:
		return decodeWorkload
	case schema.GroupKind{Group: groupLeaderWorker, Kind: kindLeaderWorkerSet}:
		return decodeLeaderWorkerSet
	}
	return nil
}

func decodeScaledObject(u *unstructured.Unstructured) (Objects, error) {
	var object scaledobject.Object
	if err := convert(u.Object, &object); err != nil {
		return Objects{}, err
	}
	return Objects{ScaledObjects: []scaledobject.Object{object}}, nil
}

func decodeScaledJob(u *unstructured.Unstructured) (Objects, error) {
	var object scaledobject.Object
	if err := convert(u.Object, &object); err != nil {
		return Objects{}, err
	}
	return Objects{ScaledJobs: []scaledobject.Object{object}}, nil
}

func decodePod(u *unstructured.Unstructured) (Objects, error) {
	pod := new(corev1.Pod)
	if err := convert(u.Object, pod); err != nil {
		return Objects{}, err
	}
	return Objects{Pods: []*corev1.Pod{pod}}, nil
}

func decodeNode(u *unstructured.Unstructured) (Objects, error) {
	node := new(corev1.Node)
	if err := convert(u.Object, node); err != nil {
		return Objects{}, err
	}
	return Objects{Nodes: []*corev1.Node{node}}, nil
}

func decodeWorkload(u *unstructured.Unstructured) (Objects, error) {
	template, templateErr := templateAt(u, "spec", "template")
	target, err := newTarget(u)
	target.Template, target.Queue = template, queueName(u, template)
	return Objects{Targets: []Target{target}}, errors.Join(err, templateErr)
}

// decodeLeaderWorkerSet reads groups of pods: the leader has the workers' template if it has none
// of its own.
func decodeLeaderWorkerSet(u *unstructured.Unstructured) (Objects, error) {
	target, err := newTarget(u)
	leader, leaderErr := templateAt(u, "spec", "leaderWorkerTemplate", "leaderTemplate")
	worker, workerErr := templateAt(u, "spec", "leaderWorkerTemplate", "workerTemplate")
	size, sizeErr := countAt(u, 1, "spec", "leaderWorkerTemplate", "size")
	target.Template, target.Worker, target.Workers = leader, worker, max(0, size-1)
	if leader == nil {
		target.Template = worker
	}
	target.Queue = queueName(u, target.Template)
	return Objects{Targets: []Target{target}}, errors.Join(err, leaderErr, workerErr, sizeErr)
}

// decodeAnyTarget reads a kind of which only spec.replicas and status.selector are known. The value
// of spec.template is used if it is a pod template.
func decodeAnyTarget(u *unstructured.Unstructured) (Objects, error) {
	target, err := newTarget(u)
	if selector, isText, selectorErr := unstructured.NestedString(u.Object, "status", "selector"); isText && selectorErr == nil {
		target.Selector = selector
	}
	if template, templateErr := templateAt(u, "spec", "template"); templateErr == nil {
		target.Template = template
	}
	target.Queue = queueName(u, target.Template)
	return Objects{Targets: []Target{target}}, err
}

// newTarget returns a workload without its templates.
func newTarget(u *unstructured.Unstructured) (Target, error) {
	const byDefault = 1 // of every kind that has a default
	replicas, err := countAt(u, byDefault, "spec", "replicas")
	target := Target{
		ReplicaFailure: replicaFailure(u),
		ID:             fleet.TargetID{Namespace: u.GetNamespace(), APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName()},
		Created:        u.GetCreationTimestamp().UTC(), Annotations: wvaAnnotations(u.GetAnnotations()),
		Replicas: replicas,
	}
	if owner := metav1.GetControllerOf(u); owner != nil {
		target.Controller = fleet.TargetID{Namespace: u.GetNamespace(), APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name}
	}
	return target, err
}

// replicaFailure returns why no pods can be created, by the workload's condition ReplicaFailure,
// such as that a quota is full; empty if they can.
func replicaFailure(u *unstructured.Unstructured) string {
	// no list, no conditions
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, each := range conditions {
		condition, isObject := each.(map[string]any)
		if !isObject || condition["type"] != "ReplicaFailure" || condition["status"] != "True" {
			continue
		}
		reason, _ := condition["reason"].(string)
		message, _ := condition["message"].(string)
		return strings.TrimSuffix(cmp.Or(reason, "ReplicaFailure")+": "+message, ": ")
	}
	return ""
}

// hasReplicas reports whether an object of an unknown kind has a number of replicas.
func hasReplicas(u *unstructured.Unstructured) bool {
	value, found, err := unstructured.NestedFieldNoCopy(u.Object, "spec", "replicas")
	if !found || err != nil {
		return false
	}
	_, isCount := value.(int64)
	return isCount
}

// countAt returns the whole number at a path; the default if there is none.
func countAt(u *unstructured.Unstructured, byDefault int, path ...string) (int, error) {
	value, found, err := unstructured.NestedFieldNoCopy(u.Object, path...)
	if err != nil || !found || value == nil {
		return byDefault, err
	}
	n, isCount := value.(int64)
	if !isCount || n < 0 || n > math.MaxInt32 {
		return byDefault, fmt.Errorf("%s is not a whole number from 0 to %d", strings.Join(path, "."), math.MaxInt32)
	}
	return int(n), nil
}

// templateAt returns the pod template at a path; nil if there is none.
func templateAt(u *unstructured.Unstructured, path ...string) (*corev1.PodTemplateSpec, error) {
	value, found, err := unstructured.NestedFieldNoCopy(u.Object, path...)
	if err != nil || !found || value == nil {
		return nil, err
	}
	fields, isObject := value.(map[string]any)
	if !isObject {
		return nil, fmt.Errorf("%s is not a pod template", strings.Join(path, "."))
	}
	template := new(corev1.PodTemplateSpec)
	if err := convert(fields, template); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(path, "."), err)
	}
	return template, nil
}

// convert decodes fields into a typed object. The converter does not tell the field that failed,
// but the JSON decoder does: its error is the one that is returned.
func convert(fields map[string]any, into any) error {
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, into)
	if err == nil {
		return nil
	}
	if data, marshalErr := json.Marshal(fields); marshalErr == nil {
		if located := utiljson.Unmarshal(data, into); located != nil {
			return located
		}
	}
	return err
}

// sorted returns a sorted copy.
func sorted[T any](rows []T, compare func(a, b T) int) []T {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, compare)
	return rows
}
