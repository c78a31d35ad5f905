package cluster

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wva-project/wva/inventory"
)

// watchedResource is a row of the table of watched resources. All that depends on the resource
// follows from its row.
type watchedResource struct {
	// gvr is the resource; the zero value in the row of further scale targets.
	gvr schema.GroupVersionResource
	// kind is that of its objects; empty in the row of further scale targets.
	kind string
	// cause is the cause of a rebuild that a change of an object starts.
	cause string
	// fields are the fields that are kept of an object.
	fields fieldMask
	// isClusterScoped is true if its objects have no namespace.
	isClusterScoped bool
	// countsEverywhere is true if objects count whatever their namespace: accelerators are
	// allocated to pods of all tenants.
	countsEverywhere bool
	// namespace and name are those of the only object; empty if all are watched.
	namespace, name string
	// labels select the watched objects; empty if all are.
	labels string
	// isOptional is true of a resource that many clusters do not serve: that is no problem.
	isOptional bool
	// followsPods is true if the resource is read in the namespaces in which pods are: in all, or
	// in Namespaces if the pods of all may not be read.
	followsPods bool
	// versions are others of the same resource, of which the first one that is served is read; the
	// fields that are kept are the same.
	versions []string
	// isTarget is true of scale targets. A kind of these is watched while a variant names it or,
	// unless the row is that of further targets, with DryRun.
	isTarget bool
	// needsSelector is true if the resource is watched only with a NamespaceSelector.
	needsSelector bool
	// holdsVariants is true if variants are held while the resource cannot be read.
	holdsVariants bool
	// isAwaited is true if the first decision waits for the resource however long it fails.
	// Without it there is nothing to decide, or no maximum is known to the decision.
	isAwaited bool
	// without is the effect while the resource was never read, in problems and in docs/cluster.md.
	without string
	// objects and use describe the resource in docs/cluster.md: the objects, and the fields that
	// are read or their purpose.
	objects, use string
}

// The rows of the table. They are never changed.
var (
	scaledObjects = &watchedResource{
		gvr: keda("scaledobjects"), kind: "ScaledObject", cause: causeScaledObject, fields: scaledObjectFields(),
		holdsVariants: true, isAwaited: true, without: "its variants are not seen",
		objects: "ScaledObjects with an `external` or `external-push` trigger that names a `modelID`", use: "each is a variant",
	}
	scaledJobs = &watchedResource{
		gvr: keda("scaledjobs"), kind: "ScaledJob", cause: causeScaledObject, fields: scaledObjectFields(),
		without: "its variants are not seen",
		objects: "ScaledJobs with such a trigger", use: "unsupported: KEDA would start jobs, not replicas",
	}
	deployments = &watchedResource{
		gvr: apps("deployments"), kind: "Deployment", cause: causeWorkload, fields: targetFields(), isTarget: true,
		holdsVariants: true, without: variantsHeld,
		objects: "Deployments", use: targetUse,
	}
	statefulSets = &watchedResource{
		gvr: apps("statefulsets"), kind: "StatefulSet", cause: causeWorkload, fields: targetFields(), isTarget: true,
		holdsVariants: true, without: variantsHeld,
		objects: "StatefulSets", use: targetUse,
	}
	leaderWorkerSets = &watchedResource{
		gvr:  schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"},
		kind: "LeaderWorkerSet", cause: causeWorkload, fields: targetFields(), isTarget: true,
		holdsVariants: true, without: variantsHeld,
		objects: "LeaderWorkerSets", use: targetUse + ", pods of a replica",
	}
	furtherTargets = &watchedResource{
		cause: causeWorkload, fields: furtherTargetFields(), isTarget: true,
		holdsVariants: true, without: variantsHeld,
		objects: "objects of any other kind with a scale subresource that a variant names", use: "replicas, and the pod template if it is at `spec.template`",
	}
	autoscalers = &watchedResource{
		gvr:  schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
		kind: "HorizontalPodAutoscaler", cause: causeAutoscaler, fields: hpaFields(),
		without: "HPAs that scale the same targets are not seen",
		objects: "HorizontalPodAutoscalers", use: "whether KEDA's HPA applies the number, and whether another HPA scales the target",
	}
	nodes = &watchedResource{
		gvr: core("nodes"), kind: "Node", cause: causeNode, fields: nodeFields(), isClusterScoped: true, countsEverywhere: true,
		without: "no accelerators are seen",
		objects: "nodes", use: "accelerators of each type on each node, and the accelerator type of a variant that neither its trigger nor its pod template name",
	}
	pods = &watchedResource{
		gvr: core("pods"), kind: "Pod", cause: causePod, fields: podFields(), countsEverywhere: true, followsPods: true,
		holdsVariants: true, without: variantsHeld,
		objects: "pods", use: "which replicas are ready, since when, and why not; the accelerators that are allocated on each node",
	}
	nodePools = &watchedResource{
		gvr:  schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"},
		kind: "NodePool", cause: causeNode, fields: nodePoolFields(), isClusterScoped: true, countsEverywhere: true, isOptional: true,
		without: "node autoscalers are not known, so each accelerator type counts as elastic",
		objects: "NodePools of Karpenter", use: "the accelerator types of which it adds nodes, and its limits",
	}
	autoscalerStatus = &watchedResource{
		gvr: core("configmaps"), kind: "ConfigMap", cause: causeNode, fields: configMapFields(), countsEverywhere: true,
		namespace: inventory.AutoscalerStatusNamespace, name: inventory.AutoscalerStatusName,
		without: "node autoscalers are not known, so each accelerator type counts as elastic",
		objects: "the ConfigMap `kube-system/cluster-autoscaler-status` of Cluster Autoscaler", use: "the largest sizes of its node groups, and whether one backs off",
	}
	capacityQuotas = &watchedResource{
		gvr:  schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1beta1", Resource: "capacityquotas"},
		kind: "CapacityQuota", cause: causeNode, fields: capacityQuotaFields(), isClusterScoped: true, countsEverywhere: true,
		isOptional: true, versions: []string{"v1alpha1", "v1"}, without: "node groups count as without quotas",
		objects: "CapacityQuotas of Cluster Autoscaler", use: "the accelerators, nodes, processors and memory that it may add",
	}
	resourceSlices = &watchedResource{
		gvr: devices("resourceslices"), kind: "ResourceSlice", cause: causeNode, fields: sliceFields(), isClusterScoped: true, countsEverywhere: true, isOptional: true,
		without: devicesUnknown,
		objects: "ResourceSlices of dynamic resource allocation", use: "the accelerators of nodes that drivers publish in place of extended resources",
	}
	deviceClasses = &watchedResource{
		gvr: devices("deviceclasses"), kind: "DeviceClass", cause: causeNode, fields: deviceClassFields(), isClusterScoped: true, countsEverywhere: true, isOptional: true,
		without: devicesUnknown,
		objects: "DeviceClasses", use: "which requests of claims, and which extended resources, are for accelerators",
	}
	deviceTaintRules = &watchedResource{
		gvr: devices("devicetaintrules"), kind: "DeviceTaintRule", cause: causeNode, fields: taintRuleFields(), isClusterScoped: true, countsEverywhere: true, isOptional: true,
		without: devicesUnknown,
		objects: "DeviceTaintRules", use: "which of these accelerators an administrator keeps from pods",
	}
	resourceClaims = &watchedResource{
		gvr: devices("resourceclaims"), kind: "ResourceClaim", cause: causePod, fields: claimFields(), countsEverywhere: true, followsPods: true, isOptional: true,
		without: devicesUnknown,
		objects: "ResourceClaims", use: "which of these accelerators are allocated, and to which pods",
	}
	claimTemplates = &watchedResource{
		gvr: devices("resourceclaimtemplates"), kind: "ResourceClaimTemplate", cause: causePod, fields: claimTemplateFields(), isOptional: true,
		without: "the accelerators per replica of variants with claims are those of their pods",
		objects: "ResourceClaimTemplates", use: "the accelerators per replica of variants with claims",
	}
	resourceQuotas = &watchedResource{
		gvr: core("resourcequotas"), kind: "ResourceQuota", cause: causePod, fields: quotaFields(),
		without: "quotas are not seen",
		objects: "ResourceQuotas", use: "how many further pods and accelerators a namespace may have",
	}
	clusterQueues = &watchedResource{
		gvr: kueue("clusterqueues"), kind: "ClusterQueue", cause: causePod, fields: clusterQueueFields(), isClusterScoped: true, countsEverywhere: true,
		isOptional: true, versions: kueueVersions, without: "quotas of Kueue are not seen",
		objects: "ClusterQueues of Kueue", use: "the quotas of pods and accelerators, and how much of them is used",
	}
	localQueues = &watchedResource{
		gvr: kueue("localqueues"), kind: "LocalQueue", cause: causePod, fields: localQueueFields(),
		isOptional: true, versions: kueueVersions, without: "quotas of Kueue are not seen",
		objects: "LocalQueues of Kueue", use: "the ClusterQueue of a workload",
	}
	resourceFlavors = &watchedResource{
		gvr: kueue("resourceflavors"), kind: "ResourceFlavor", cause: causePod, fields: flavorFields(), isClusterScoped: true, countsEverywhere: true,
		isOptional: true, versions: kueueVersions, without: "a replica may use each flavor of its ClusterQueue",
		objects: "ResourceFlavors of Kueue", use: "the accelerator type of a flavor",
	}
	cohorts = &watchedResource{
		gvr: kueue("cohorts"), kind: "Cohort", cause: causePod, fields: cohortFields(), isClusterScoped: true, countsEverywhere: true,
		isOptional: true, versions: kueueVersions, without: "a ClusterQueue borrows from those with the same cohort only",
		objects: "Cohorts of Kueue", use: "whether a cohort has a parent or a quota of its own",
	}
	globalConfig = &watchedResource{
		gvr: core("configmaps"), kind: "ConfigMap", cause: causeConfig, fields: configMapFields(), countsEverywhere: true, isAwaited: true,
		labels: configLabels, without: "the configuration is that of the file",
		objects: "ConfigMaps with the label `" + configLabels + "` in the server's namespace, with `kubernetes.configMaps: own` or `all`", use: "configuration of all namespaces",
	}
	tenantConfig = &watchedResource{
		gvr: core("configmaps"), kind: "ConfigMap", cause: causeConfig, fields: configMapFields(),
		labels: configLabels, without: "the configuration of namespaces is that of the administrator",
		objects: "ConfigMaps with that label in other namespaces, with `kubernetes.configMaps: all`", use: "configuration of the namespace",
	}
	namespaces = &watchedResource{
		gvr: core("namespaces"), kind: "Namespace", cause: causeNamespace, fields: namespaceFields(), isClusterScoped: true,
		needsSelector: true, holdsVariants: true, isAwaited: true, without: "no namespace is selected",
		objects: "namespaces, with `--namespace-selector`", use: "their labels",
	}
)

// resources is the table. Of several causes of a rebuild, the first in this order is told.
var resources = []*watchedResource{
	scaledObjects, scaledJobs, deployments, statefulSets, leaderWorkerSets, furtherTargets, autoscalers,
	nodes, nodePools, autoscalerStatus, capacityQuotas, resourceSlices, deviceClasses, deviceTaintRules, resourceClaims, claimTemplates,
	resourceQuotas, clusterQueues, localQueues, resourceFlavors, cohorts, pods, namespaces,
	globalConfig, tenantConfig,
}

// kueueVersions are the versions of Kueue's resources beside v1beta2, with the same fields.
var kueueVersions = []string{"v1beta1", "v1"}

const (
	configLabels   = inventory.ConfigLabel + "=" + inventory.ConfigLabelValue
	variantsHeld   = "variants that need it are held"
	devicesUnknown = "accelerators of dynamic resource allocation are not counted"
	targetUse      = "replicas in the spec, pod template, arguments of the engine"
)

func core(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: name}
}

func apps(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: name}
}

func devices(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: name}
}

func kueue(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: name}
}

func keda(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: name}
}

// targetOf returns the row of a kind of scale target. A further kind that is decoded by name, such
// as a ReplicaSet, has its fields at the places of a Deployment.
func targetOf(kind schema.GroupKind) *watchedResource {
	for _, r := range resources {
		if r.isTarget && r.groupKind() == kind {
			return r
		}
	}
	further := *furtherTargets
	further.kind = kind.Kind
	if inventory.Decodes(kind) {
		further.fields = deployments.fields
	}
	return &further
}

func (r *watchedResource) groupKind() schema.GroupKind {
	return schema.GroupKind{Group: r.gvr.Group, Kind: r.kind}
}

// isOfNodeAutoscaler reports whether the resource is read for the limits of a node autoscaler.
func (r *watchedResource) isOfNodeAutoscaler() bool { return r == nodePools || r == autoscalerStatus }

// isOfDevices reports whether the resource is read for the accelerators of dynamic resource
// allocation.
func (r *watchedResource) isOfDevices() bool {
	return r == resourceSlices || r == deviceClasses || r == deviceTaintRules || r == resourceClaims
}

// mayBeAnnotated reports whether objects of the resource are watched for their annotations.
func (r *watchedResource) mayBeAnnotated() bool { return r.isTarget && r != furtherTargets }

// isWatched reports whether the resource is watched for any variants.
func (r *watchedResource) isWatched(options *Options) bool {
	switch r {
	case globalConfig:
		return options.ConfigNamespace != ""
	case tenantConfig:
		return options.ConfigNamespace != "" && options.TenantConfig
	}
	return !r.isTarget && (!r.needsSelector || options.NamespaceSelector != nil)
}
