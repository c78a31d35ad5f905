{{/* Rules for a Role in a watched namespace, and part of the ClusterRole. */}}
{{- define "wva.rbac.rules" -}}
# The variants, and ScaledJobs with a WVA trigger, which are unsupported and get a reason.
- apiGroups: [keda.sh]
  resources: [scaledobjects, scaledjobs]
  verbs: [get, list, watch]
# Scale targets. A further kind of target needs a rule of its own like these two.
- apiGroups: [apps]
  resources: [deployments, statefulsets]
  verbs: [get, list, watch]
- apiGroups: [leaderworkerset.x-k8s.io]
  resources: [leaderworkersets]
  verbs: [get, list, watch]
{{- range .Values.rbac.scaleTargets }}
- apiGroups: {{ toJson .apiGroups }}
  resources: {{ toJson .resources }}
  verbs: [get, list, watch]
{{- end }}
# The replicas of a target whose kind does not have them in its spec. Read only: scaling would need
# update.
- apiGroups: ["*"]
  resources: ["*/scale"]
  verbs: [get]
# HPAs: KEDA's own, and others on the same target.
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch]
# Quotas that limit the pods of a namespace.
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [get, list, watch]
# Claims of dynamic resource allocation that the pods of a template get.
- apiGroups: [resource.k8s.io]
  resources: [resourceclaimtemplates]
  verbs: [get, list, watch]
# The queues of Kueue that admit the pods of a namespace.
- apiGroups: [kueue.x-k8s.io]
  resources: [localqueues]
  verbs: [get, list, watch]
{{- if eq .Values.configMaps "all" }}
# ConfigMaps with configuration of tenants. A role cannot be limited to a label: this allows to read
# all ConfigMaps of the namespace.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch]
{{- end }}
# Events on a ScaledObject: a new one, or a higher count of an equal one.
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{/* Rules for resources of the whole cluster, which only a ClusterRole can allow. */}}
{{- define "wva.rbac.clusterRules" -}}
# The path of the number of replicas in a kind of target.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get]
# Pods are replicas, and accelerators are allocated to pods of all tenants. Nodes have the accelerators.
# Namespaces are watched only if some are selected by their labels.
- apiGroups: [""]
  resources: [pods, nodes, namespaces]
  verbs: [get, list, watch]
# Whether node autoscalers add nodes: Karpenter's NodePools, and the status of Cluster Autoscaler.
- apiGroups: [karpenter.sh]
  resources: [nodepools]
  verbs: [get, list, watch]
# The quotas of the nodes that Cluster Autoscaler adds.
- apiGroups: [autoscaling.x-k8s.io]
  resources: [capacityquotas]
  verbs: [get, list, watch]
# The quotas of Kueue.
- apiGroups: [kueue.x-k8s.io]
  resources: [clusterqueues, cohorts, resourceflavors]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [cluster-autoscaler-status]
  verbs: [get, list, watch]
# The accelerators that drivers of dynamic resource allocation publish, their classes and taints, and
# the claims of all tenants to which they are allocated.
- apiGroups: [resource.k8s.io]
  resources: [resourceslices, deviceclasses, devicetaintrules, resourceclaims]
  verbs: [get, list, watch]
{{- end }}

{{- define "wva.rbac.subjects" -}}
- kind: ServiceAccount
  name: {{ include "wva.serviceAccountName" . | toYaml }}
  namespace: {{ toYaml .Release.Namespace }}
{{- end }}
