package fleet

import "time"

// Snapshot is everything that one decision depends on. Each source fills its own tables; rows are joined by the planner.
// The order of rows carries no meaning but in Profiles; but for loads, a table has one row for each identity. A row that is not there was not
// observed; Missing says why where that is known.
type Snapshot struct {
	// Time is the instant of the decision. Time of loads and usages is the instant of their queries, at or before it.
	Time time.Time `json:"time"`

	Models       []Model           `json:"models,omitzero"`       // configuration: what belongs to a model
	Classes      []ServiceClass    `json:"classes,omitzero"`      // configuration: what service classes there are
	Accelerators []AcceleratorSpec `json:"accelerators,omitzero"` // configuration: the catalogue
	// Profiles are configuration too: what engines cost. Of several rows that fit a variant, the first counts.
	Profiles  []Profile  `json:"profiles,omitzero"`
	Variants  []Variant  `json:"variants,omitzero"`  // ScaledObjects, and what annotations declare
	Workloads []Workload `json:"workloads,omitzero"` // what the variants scale, as it stands
	Pools     []Pool     `json:"pools,omitzero"`     // accelerators on nodes
	Usages    []Usage    `json:"usages,omitzero"`    // what each pod's engine reports
	Loads     []Load     `json:"loads,omitzero"`     // what is asked of each model
	Standing  []Standing `json:"standing,omitzero"`  // the plan in force
	Missing   []Missing  `json:"missing,omitzero"`   // what could not be observed, and why
}

// Model is what the administrator says of a model. A model without a row takes every default.
type Model struct {
	ID ModelID `json:"id"`
	// ScaleToZero allows the model to have no replica while nobody asks for it.
	ScaleToZero bool `json:"scaleToZero,omitzero"`
	// Retention is how long a model stays up without any use before it may go to zero. Zero means the policy's default.
	Retention time.Duration `json:"-"`
}

// ServiceClass is a class of requests. Variants name theirs; one that names none, or none of these, has priority 0.
type ServiceClass struct {
	Name string `json:"name"` // unique
	// Priority orders models that compete for accelerators: those of a higher one are served first.
	Priority int `json:"priority"`
}

// AcceleratorSpec is one row of the catalogue of accelerators.
type AcceleratorSpec struct {
	Name Accelerator `json:"name"`
	// Speed is the throughput of one accelerator relative to the others of the catalogue; only ratios count. > 0.
	Speed float64 `json:"speed"`
	// MemoryGiB is the memory of one accelerator in GiB. > 0.
	MemoryGiB float64 `json:"memoryGiB"`
}

// Workload is a scale target as the API server shows it.
type Workload struct {
	ID TargetID `json:"id"`
	// Replicas is the number asked for (the scale subresource's spec), not the number that is there.
	Replicas int `json:"replicas"`
	// Stale is why Replicas may be out of date; empty where it is not. A number that stands and is higher then counts.
	Stale string `json:"stale,omitzero"`
	// Refused is why no further pod can be made, as the API server says it, such as that a quota is full; empty where one can.
	Refused string `json:"refused,omitzero"`
	// Startup is how long a replica of this target usually needs from its creation until it is ready. Zero: not known.
	Startup time.Duration `json:"-"`
	// MaxSequences is the engine's limit of requests in a batch (max_num_seqs). Zero: not known.
	MaxSequences int `json:"maxSequences,omitzero"`
	// KVTokens is the room of one replica's KV cache in tokens as its arguments say it. Zero: not known.
	KVTokens float64 `json:"kvTokens,omitzero"`
	// BatchedTokens is the engine's limit of tokens in one iteration (max_num_batched_tokens). Zero: not known.
	BatchedTokens int `json:"batchedTokens,omitzero"`
	// TensorParallel is over how many accelerators the engine splits each layer. Zero: not said, which engines take for 1.
	TensorParallel int `json:"tensorParallel,omitzero"`
	// MemoryShare is the part of an accelerator's memory that the engine takes (gpu_memory_utilization), in (0, 1]. Zero: not
	// known.
	MemoryShare float64 `json:"memoryShare,omitzero"`
	// GroupSize is how many pods of one replica hold accelerators, each as many as the others. Zero or one: a replica is one pod.
	GroupSize int `json:"groupSize,omitzero"`
	// Precision is how the engine quantizes the weights, as its arguments say it, such as fp8; empty where they do not.
	Precision string `json:"precision,omitzero"`
	// ForeignAutoscaler is the name of a HorizontalPodAutoscaler that scales the target and was not made by KEDA for one of the
	// variants that do; empty where there is none.
	ForeignAutoscaler string `json:"foreignAutoscaler,omitzero"`
	Pods              []Pod  `json:"pods,omitzero"`
}

// Pod is one replica of a workload (for a group of pods, its leader).
type Pod struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Ready   bool      `json:"ready,omitzero"`
	// ReadyAt is since when the pod has been ready; it means something only where Ready.
	ReadyAt time.Time `json:"readyAt,omitzero"`
	// Terminating is true of a pod that is being deleted: it still finishes requests, but will take no more.
	Terminating bool `json:"terminating,omitzero"`
	// Waiting is why the pod is not ready, as the API server says it ("Unschedulable", "ImagePullBackOff"); may be empty.
	Waiting string `json:"waiting,omitzero"`
	// Nodes are the nodes on which the replica's pods hold accelerators, one row for each pod of a group: a node is there several
	// times where it holds several of them. Empty while none has a node.
	Nodes []string `json:"nodes,omitzero"`
}

// Pool is the accelerators of one kind as they stand on nodes.
type Pool struct {
	Accelerator Accelerator `json:"accelerator"`
	// Elastic is true where a node autoscaler stands behind the pool.
	Elastic bool `json:"elastic,omitzero"`
	// Limit is how many accelerators there may be in all of an elastic pool, those that others hold not counted. Zero: any number.
	Limit int    `json:"limit,omitzero"`
	Nodes []Node `json:"nodes,omitzero"`
}

// Node is one node of a pool; both numbers are accelerators.
type Node struct {
	Name        string `json:"name"`
	Allocatable int    `json:"allocatable"`
	// Taken is what pods of all tenants hold, the fleet's own included.
	Taken int `json:"taken"`
}

// Usage is what the engine of one pod reports. Several engines in one pod are one row: counts added up, KV the largest.
type Usage struct {
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	Model     string    `json:"model"` // the served name
	Time      time.Time `json:"time"`  // the instant of the query

	Running Reading `json:"running"` // requests in the batch
	Waiting Reading `json:"waiting"` // requests in the engine's queue
	KV      Reading `json:"kv"`      // share of the KV cache in use, 0 to 1
	// KVTokens is the room of the KV cache in tokens, over all engines of the pod.
	KVTokens Reading `json:"kvTokens"`
	// FirstTokens is the rate at which requests got their first token over the latest window, per second. It counts all of a
	// pod that was born within the window; Reset where its engine restarted within it; absent where fewer than four scrapes
	// of an older pod fall into the window (Scrapes says how many).
	FirstTokens Reading `json:"firstTokens"`
	// Scrapes is how many samples the latest window holds.
	Scrapes int `json:"scrapes,omitzero"`
	// WaitingGrowth is by how much the engine's queue grew over the latest window, requests per second; may be negative.
	WaitingGrowth Reading `json:"waitingGrowth"`
	// ITL is the mean time between output tokens over the latest window, seconds.
	ITL Reading `json:"itl"`
	// MeanRate, MeanKV and MeanITL are first tokens per second, share of the KV cache in use and seconds between output tokens
	// as they were on average over the peak window, or the pod's life where that is shorter: what a replica carries changes
	// slowly, and one minute of it is noisy.
	MeanRate Reading `json:"meanRate"`
	MeanKV   Reading `json:"meanKV"`
	MeanITL  Reading `json:"meanITL"`
	// MeanRunning is the mean number of requests in the batch over the same window, and MeanPrefill the mean time from when a
	// request was taken into the batch to its first token, seconds: its prefill, without the wait before.
	MeanRunning Reading `json:"meanRunning"`
	MeanPrefill Reading `json:"meanPrefill"`
	// ITLFloor is the lowest mean time between output tokens that the pod showed in any window of the long window, seconds:
	// that of a nearly empty batch.
	ITLFloor Reading `json:"itlFloor"`
	// PeakRate is the highest rate of first tokens that the pod showed in any window of the long window, per second.
	PeakRate Reading `json:"peakRate"`
	// PeakThroughput is the same over those windows in which its queue was never short: it was busy all the time. Absent
	// where there was no such window.
	PeakThroughput Reading `json:"peakThroughput"`
}

// LoadSource says who reported a load.
type LoadSource string

// The sources of loads.
const (
	SourceEngine  LoadSource = "engine"
	SourceGateway LoadSource = "gateway"
)

// Load is what is asked of one model in one namespace, as one source reports it. Of two rows of the same source for the
// same model the one with the later Time counts, reading by reading.
type Load struct {
	Namespace string     `json:"namespace"`
	Model     string     `json:"model"` // the served name
	Source    LoadSource `json:"source"`
	Time      time.Time  `json:"time"` // the instant of the query

	// Arrivals is the rate of requests over the latest window, per second. Engines report none: theirs is the sum over
	// the usages of their pods.
	Arrivals Reading `json:"arrivals"`
	// Queued is how many requests the source holds back now (gateway).
	Queued Reading `json:"queued"`
	// PeakArrivals and PeakInFlight are the highest of the peak window (rate per second; running and waiting requests).
	PeakArrivals Reading `json:"peakArrivals"`
	PeakInFlight Reading `json:"peakInFlight"`
	// Trend is by how much the rate of requests rises per second, over the last minutes; negative where it falls.
	Trend Reading `json:"trend"`
	// PeakCovered is true where samples cover the whole peak window.
	PeakCovered bool `json:"peakCovered,omitzero"`
	// LastActive is when the model was last seen in use (arrivals, or a request in flight) within the idle window; zero
	// where it was not. IdleCovered is how much of the idle window, counted back from Time, samples cover without a gap.
	LastActive  time.Time     `json:"lastActive,omitzero"`
	IdleCovered time.Duration `json:"-"`
	// PromptTokens and OutputTokens are the mean lengths of a request.
	PromptTokens Reading `json:"promptTokens"`
	OutputTokens Reading `json:"outputTokens"`
	// PromptLengths and OutputLengths are the histograms of the same, in ascending order; empty where unknown.
	PromptLengths []Bucket `json:"promptLengths,omitzero"`
	OutputLengths []Bucket `json:"outputLengths,omitzero"`
	// PrefixHits is the share of prompt tokens that were found in the prefix cache, 0 to 1.
	PrefixHits Reading `json:"prefixHits"`
	// Dispersion is the index of dispersion of the arrivals: the variance of their number in a stretch of time over its mean, 1
	// for a Poisson process.
	Dispersion Reading `json:"dispersion"`
	// TTFT is the 95th percentile of the time to first token, and ITL the mean time between output tokens, over the latest
	// window, seconds.
	TTFT Reading `json:"ttft"`
	ITL  Reading `json:"itl"`
}

// Standing is the decision in force for a variant, and what was last known of it.
type Standing struct {
	Variant  VariantID `json:"variant"`
	Replicas int       `json:"replicas"`
	// Decided is when the number was last derived from data; repeating it while it is held does not renew it. Zero: no number
	// stands, and the row says only what was known.
	Decided time.Time `json:"decided,omitzero"`
	// Accelerator is that on which the variant ran when it was last known: without a replica, no node shows it.
	Accelerator Accelerator `json:"accelerator,omitzero"`
	// Changed is when the number last became another one, by Delta replicas; zero where it has not since it is known.
	Changed time.Time `json:"changed,omitzero"`
	Delta   int       `json:"delta,omitzero"`
}

// Missing is something that could not be observed.
type Missing struct {
	// Source names what failed, such as "prometheus query waiting".
	Source string `json:"source"`
	// Reason says why, and ends with the remedy where there is one.
	Reason string `json:"reason"`
	// Hides is whose loads and usages are incomplete because of it; empty where it is worth knowing only.
	Hides LoadSource `json:"hides,omitzero"`
}
