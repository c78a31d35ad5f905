package fleet

import (
	"slices"
	"time"
)

// Snapshot is everything that one decision depends on, the policy aside. Each source fills its own
// tables; the planner joins them. The order of rows has no meaning, except in Profiles. A table has
// one row for each identity, except Loads. A row that is absent was not observed; Missing says why,
// if that is known.
type Snapshot struct {
	// Time is the instant of the decision. Time of loads and usages is the instant of their
	// queries, at or before it.
	Time time.Time `json:"time"`

	Models       []Model           `json:"models,omitzero"`       // configuration of models
	Classes      []ServiceClass    `json:"classes,omitzero"`      // configuration: service classes
	Accelerators []AcceleratorSpec `json:"accelerators,omitzero"` // configuration: the catalogue
	Limits       []Limit           `json:"limits,omitzero"`       // and maxima of namespaces
	// Profiles are configuration too: measured engines. Of several rows that fit a variant, the
	// first counts.
	Profiles  []Profile          `json:"profiles,omitzero"`
	Variants  []Variant          `json:"variants,omitzero"`  // ScaledObjects, and dry-run variants
	Workloads []Workload         `json:"workloads,omitzero"` // the scale targets of the variants
	Pools     []Pool             `json:"pools,omitzero"`     // accelerators on nodes
	Quotas    []Quota            `json:"quotas,omitzero"`    // limits on the workloads together
	Usages    []Usage            `json:"usages,omitzero"`    // reports of each pod's engine
	Loads     []Load             `json:"loads,omitzero"`     // demand of each model
	Previous  []PreviousDecision `json:"previous,omitzero"`  // the last plan
	Missing   []Missing          `json:"missing,omitzero"`   // failures to observe
}

// Model is the configuration of a model. A model without a row takes every default.
type Model struct {
	ID ModelID `json:"id"`
	// ScaleToZeroOff is true if the administrator does not allow the model to scale to zero,
	// whatever its ScaledObjects allow.
	ScaleToZeroOff bool `json:"scaleToZeroOff,omitzero"`
	// Retention is how long a model has to be idle before it may go to zero, if none of its
	// variants says so (Variant.ScaleToZeroAfter). Zero: the policy's default.
	Retention time.Duration `json:"-"`
}

// ServiceClass is a class of requests. A variant that names no class, or one that is not
// configured, has priority 0.
type ServiceClass struct {
	Name string `json:"name"` // unique
	// Priority orders models that compete for accelerators: the higher one is served first.
	Priority int `json:"priority"`
	// Namespaces are those whose variants may have the class if its priority is above 0: names, or
	// patterns in which * stands for any characters. A class of priority 0 or less needs no grant.
	Namespaces []string `json:"namespaces,omitzero"`
	// Objective is that of variants of the class that state none. The variants of a snapshot have
	// it already.
	Objective Objective `json:"objective,omitzero"`
}

// GrantedTo reports whether variants of a namespace may have the class. If not, they have the
// default priority of 0: nobody gets a priority by asking for it.
func (c ServiceClass) GrantedTo(namespace string) bool {
	return c.Priority <= 0 || slices.ContainsFunc(c.Namespaces, func(pattern string) bool { return MatchPattern(pattern, namespace) })
}

// Limit is the most accelerators that the replicas of all variants of a namespace may have
// together.
type Limit struct {
	Namespace   string      `json:"namespace"`
	Accelerator Accelerator `json:"accelerator,omitzero"` // empty: of all types
	Max         int         `json:"max"`
}

// AcceleratorSpec is one row of the catalogue of accelerators.
type AcceleratorSpec struct {
	Name Accelerator `json:"name"`
	// Speed is the throughput of one accelerator relative to the others of the catalogue; only
	// ratios count. > 0.
	Speed float64 `json:"speed"`
	// Price is that of one accelerator for an hour, to weigh shortage of contended accelerators.
	// Zero: the median over namespaces of the prices of the variants.
	Price float64 `json:"price,omitzero"`
}

// Workload is a scale target as the API server shows it.
type Workload struct {
	ID TargetID `json:"id"`
	// Replicas is the number in the scale subresource's spec, not the number of pods.
	Replicas int `json:"replicas"`
	// Stale is why Replicas may be out of date; empty if it is not. A higher previous decision then
	// counts.
	Stale string `json:"stale,omitzero"`
	// KnownAt is when the workload and its pods were last known, while one of them cannot be read:
	// pods do not become overdue unseen. Zero: they are known now.
	KnownAt time.Time `json:"knownAt,omitzero"`
	// ReplicaFailure is why no further pod can be created, as the API server says it, such as an
	// exceeded quota; empty if one can.
	ReplicaFailure string `json:"replicaFailure,omitzero"`
	// Startup is the usual time from a replica's creation until it is ready. Zero: not known.
	Startup time.Duration `json:"-"`
	// MaxSequences is the engine's limit of requests in a batch (max_num_seqs). Zero: not known.
	MaxSequences int `json:"maxSequences,omitzero"`
	// KVTokens is the KV cache size of one replica in tokens, from its arguments. Zero: not known.
	KVTokens float64 `json:"kvTokens,omitzero"`
	// BatchedTokens is the engine's limit of tokens in one iteration (max_num_batched_tokens).
	// Zero: not known.
	BatchedTokens int `json:"batchedTokens,omitzero"`
	// TensorParallel is the number of accelerators over which the engine splits each layer. Zero:
	// not given, which engines take for 1.
	TensorParallel int `json:"tensorParallel,omitzero"`
	// GroupSize is how many pods of one replica have accelerators, each as many as the others. Zero
	// or one: a replica is one pod.
	GroupSize int `json:"groupSize,omitzero"`
	// GPUs is how many accelerators the pod templates of one replica request, whatever the variant
	// states. Zero: not known.
	GPUs int `json:"gpus,omitzero"`
	// Placement is the number of the placement of its pods on nodes of its accelerator type, by
	// node selector, affinity and tolerations: Node.Rejects names it. Zero: every node that is not
	// closed takes them.
	Placement int `json:"placement,omitzero"`
	// Precision is that of the weights, from the engine's arguments, such as fp8; empty if not
	// given.
	Precision string `json:"precision,omitzero"`
	// ConflictingHPA is the name of a HorizontalPodAutoscaler that scales the target and was not
	// made by KEDA for one of the variants; empty if there is none.
	ConflictingHPA string `json:"conflictingHPA,omitzero"`
	Pods           []Pod  `json:"pods,omitzero"`
	// Ended are the names of pods that the workload had a short while ago, sorted: their last
	// metrics may still be read.
	Ended []string `json:"ended,omitzero"`
}

// Quota is one resource of a quota, which limits the replicas of several workloads together.
type Quota struct {
	// Namespace is that of a ResourceQuota; empty if the quota is one of the cluster.
	Namespace string `json:"namespace,omitzero"`
	Name      string `json:"name"`     // such as "ResourceQuota gpus" or "ClusterQueue team-a"
	Resource  string `json:"resource"` // such as "nvidia.com/gpu", or "pods of flavor h100"
	// Hard is the limit, and Used the amount that pods of all tenants use.
	Hard int `json:"hard"`
	Used int `json:"used"`
	// Gates is true if pods beyond the quota wait with a scheduling gate, and are not used before.
	// Otherwise the API server rejects them.
	Gates bool `json:"gates,omitzero"`
	// Uses are the workloads that it limits.
	Uses []QuotaUse `json:"uses"`
}

// QuotaUse is the amount of a quota that one replica of a workload uses.
type QuotaUse struct {
	Target TargetID `json:"target"`
	Amount int      `json:"amount"`
}

// Pod is one replica of a workload (for a group of pods, its leader).
type Pod struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Ready   bool      `json:"ready,omitzero"`
	// ReadyAt is since when the pod has been ready; it means something only if Ready.
	ReadyAt time.Time `json:"readyAt,omitzero"`
	// Terminating is true of a pod that is being deleted: it finishes requests, and takes no new
	// ones.
	Terminating bool `json:"terminating,omitzero"`
	// ScheduledAt is since when the pod has a node. Zero: it has none, or the time is not known.
	ScheduledAt time.Time `json:"scheduledAt,omitzero"`
	// Waiting is why the pod is not ready, as the API server says it ("Unschedulable",
	// "ImagePullBackOff"); may be empty.
	Waiting string `json:"waiting,omitzero"`
	// Nodes are the nodes on which the replica's pods have accelerators, one row for each pod of a
	// group: a node with several of them occurs several times. Empty while no pod is scheduled.
	Nodes []string `json:"nodes,omitzero"`
	// Others are the names of the further pods of the replica, sorted. Each may report metrics
	// beside this pod, as those of a data-parallel group, or instead of it, as one in which the
	// engine runs while this one holds its accelerators.
	Others []string `json:"others,omitzero"`
}

// Names returns the names of all pods of the replica.
func (p *Pod) Names() []string { return append([]string{p.Name}, p.Others...) }

// StartedAt returns when the start of the pod began: with its node, if it had to wait for one.
func (p *Pod) StartedAt() time.Time {
	if p.ScheduledAt.After(p.Created) {
		return p.ScheduledAt
	}
	return p.Created
}

// Pool is the accelerators of one type on nodes.
type Pool struct {
	Accelerator Accelerator `json:"accelerator"`
	// Elastic is true if a node autoscaler adds nodes to the pool.
	Elastic bool `json:"elastic,omitzero"`
	// Limit is the largest number of accelerators of an elastic pool, without those allocated to
	// other pods. Zero: no limit.
	Limit int `json:"limit,omitzero"`
	// Adds is the largest number of accelerators that the node autoscaler may add to those of the
	// nodes, and LimitedBy the object that says so, such as "NodePool gpu". Zero: no limit.
	Adds      int    `json:"adds,omitzero"`
	LimitedBy string `json:"limitedBy,omitzero"`
	// BacksOff is true if the node autoscaler adds none of some nodes for now, after a failure:
	// pods that wait for them stay. Zero Adds are none then.
	BacksOff bool   `json:"backsOff,omitzero"`
	Nodes    []Node `json:"nodes,omitzero"`
}

// Node is one node of a pool; both numbers are accelerators.
type Node struct {
	Name        string `json:"name"`
	Allocatable int    `json:"allocatable"`
	// Allocated is the number allocated to pods of all tenants, the fleet's own included.
	Allocated int `json:"allocated"`
	// Closed is why the node takes no more pods, such as "cordoned"; empty if it does. Then its
	// allocatable accelerators are at most the allocated ones.
	Closed string `json:"closed,omitzero"`
	// Usable is the most accelerators that replicas of the fleet can have on the node together,
	// existing ones included, and UsableBy the cause, such as "insufficient cpu". Zero: the
	// accelerators alone limit them.
	Usable   int    `json:"usable,omitzero"`
	UsableBy string `json:"usableBy,omitzero"`
	// Rejects are the placements of which the node takes no pods, though it takes others.
	Rejects []Rejection `json:"rejects,omitzero"`
}

// Rejection is a placement of workloads whose pods a node does not take.
type Rejection struct {
	Placement int    `json:"placement"` // Workload.Placement of the node's accelerator type
	Why       string `json:"why"`       // such as "tainted"
}

// PreviousDecision is the last decision about a variant, and its last known accelerator type.
type PreviousDecision struct {
	Variant  VariantID `json:"variant"`
	Replicas int       `json:"replicas"`
	// Decided is when the number was last derived from data; holding it does not renew it. Zero:
	// there is no number, and the row only remembers the accelerator type.
	Decided time.Time `json:"decided,omitzero"`
	// Accelerator is the type on which the variant ran when it was last known: without a replica,
	// no node shows it.
	Accelerator Accelerator `json:"accelerator,omitzero"`
	// Changed is when the number last became another one, by Delta replicas; zero if it has not
	// since it is known.
	Changed time.Time `json:"changed,omitzero"`
	Delta   int       `json:"delta,omitzero"`
}

// Missing is something that could not be observed.
type Missing struct {
	// Source names what failed, such as "prometheus query waiting".
	Source string `json:"source"`
	// Reason says why, and ends with the remedy if there is one.
	Reason string `json:"reason"`
	// Hides is the source whose loads and usages are incomplete because of it; empty if it is worth
	// knowing only.
	Hides LoadSource `json:"hides,omitzero"`
}
