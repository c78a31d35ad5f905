package inventory

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

// Objects are the decoded objects of a fleet. Each object is in it once, in any order.
type Objects struct {
	ScaledObjects []scaledobject.Object
	ScaledJobs    []scaledobject.Object
	Targets       []Target
	HPAs          []HPA
	Pods          []*corev1.Pod
	Nodes         []*corev1.Node
	// ResourceQuotas are those of all namespaces.
	ResourceQuotas []*corev1.ResourceQuota
	NodePools      []NodePool
	Kueue          Kueue
	NodeGroups     *NodeGroups // nil: Cluster Autoscaler does not run
	CapacityQuotas []CapacityQuota
	// ResourceSlices are those of the drivers whose devices are accelerators; with the claims of
	// all namespaces, which say which devices are allocated.
	ResourceSlices         []*resourcev1.ResourceSlice
	ResourceClaims         []*resourcev1.ResourceClaim
	ResourceClaimTemplates []*resourcev1.ResourceClaimTemplate
	DeviceClasses          []*resourcev1.DeviceClass
	DeviceTaintRules       []*resourcev1.DeviceTaintRule
	// ConfigMaps are those with configuration.
	ConfigMaps []ConfigMap
}

// Target is a workload that may be scaled, or a controller between it and its pods, such as a
// ReplicaSet.
type Target struct {
	ID fleet.TargetID
	// Controller is the workload that made this one, such as the Deployment of a ReplicaSet; zero
	// if there is none.
	Controller fleet.TargetID
	// Created is its creation time. Annotations are those of WVA; nil if there are none.
	Created     time.Time
	Annotations map[string]string
	// Replicas is the number in its spec.
	Replicas int
	// Queue is the LocalQueue of Kueue that admits its pods; empty if none does.
	Queue string
	// ReplicaFailure is why no further pod can be created, in the API server's words; empty if one
	// can.
	ReplicaFailure string
	// Selector is the scale's status.selector, of a kind that is not read by name: the labels of
	// its pods, except those that another target owns. Empty if there is none.
	Selector string
	// Template is the pod of one replica, for a group of pods its leader; nil if the kind has none.
	Template *corev1.PodTemplateSpec
	// Worker is the template of a group's other pods, and Workers how many there are of them; nil
	// and 0 if a replica is one pod.
	Worker  *corev1.PodTemplateSpec
	Workers int
	// hasOpenClaims is true if the claims of a template do not say how many accelerators they get.
	hasOpenClaims bool
	// claimed are the devices that a replica gets by templates of claims, or by extended resources
	// that count them, as quotas name them.
	claimed map[corev1.ResourceName]int
}

// Append adds other objects.
func (o *Objects) Append(more Objects) {
	o.ScaledObjects = append(o.ScaledObjects, more.ScaledObjects...)
	o.ScaledJobs = append(o.ScaledJobs, more.ScaledJobs...)
	o.Targets = append(o.Targets, more.Targets...)
	o.HPAs = append(o.HPAs, more.HPAs...)
	o.Pods = append(o.Pods, more.Pods...)
	o.Nodes = append(o.Nodes, more.Nodes...)
	o.ResourceQuotas = append(o.ResourceQuotas, more.ResourceQuotas...)
	o.NodePools = append(o.NodePools, more.NodePools...)
	o.CapacityQuotas = append(o.CapacityQuotas, more.CapacityQuotas...)
	o.Kueue.append(more.Kueue)
	o.ConfigMaps = append(o.ConfigMaps, more.ConfigMaps...)
	if more.NodeGroups != nil {
		o.NodeGroups = more.NodeGroups
	}
	o.ResourceSlices = append(o.ResourceSlices, more.ResourceSlices...)
	o.ResourceClaims = append(o.ResourceClaims, more.ResourceClaims...)
	o.ResourceClaimTemplates = append(o.ResourceClaimTemplates, more.ResourceClaimTemplates...)
	o.DeviceClasses = append(o.DeviceClasses, more.DeviceClasses...)
	o.DeviceTaintRules = append(o.DeviceTaintRules, more.DeviceTaintRules...)
}

// Len returns the number of objects.
func (o *Objects) Len() int {
	n := len(o.ScaledObjects) + len(o.ScaledJobs) + len(o.Targets) + len(o.HPAs) + len(o.Pods) + len(o.Nodes)
	n += len(o.ResourceQuotas) + len(o.NodePools) + len(o.CapacityQuotas) + o.Kueue.len() + len(o.ConfigMaps)
	n += len(o.ResourceSlices) + len(o.ResourceClaims) + len(o.ResourceClaimTemplates) + len(o.DeviceClasses) + len(o.DeviceTaintRules)
	if o.NodeGroups != nil {
		n++
	}
	return n
}
