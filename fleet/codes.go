package fleet

// Code is the stable name of a reason, a finding or a notice.
type Code string

// The codes of decisions.
const (
	CodeUnchanged                Code = "Unchanged"
	CodeScaleUp                  Code = "ScaleUp"
	CodeScaleDown                Code = "ScaleDown"
	CodeRebalance                Code = "Rebalance"
	CodeScaleToZero              Code = "ScaleToZero"
	CodeScaleFromZero            Code = "ScaleFromZero"
	CodeLastReplica              Code = "LastReplica"
	CodeMakeBeforeBreak          Code = "MakeBeforeBreak"
	CodeSaturated                Code = "Saturated"
	CodeSLOMissed                Code = "SLOMissed"
	CodeWindowNotCovered         Code = "WindowNotCovered"
	CodeMaxReplicas              Code = "MaxReplicas"
	CodeInsufficientAccelerators Code = "InsufficientAccelerators"
	CodeProbe                    Code = "Probe"
	CodeDuplicateTarget          Code = "DuplicateTarget"
	CodePaused                   Code = "Paused"
	CodeNotRequested             Code = "NotRequested"
	CodeReplicaStuck             Code = "ReplicaStuck"
	CodeMinLifetime              Code = "MinLifetime"
	CodeStartsForCurrentDemand   Code = "StartsForCurrentDemand"
	CodeNotStarting              Code = "NotStarting"
	CodeActivation               Code = "Activation"
	CodeScaleInPaused            Code = "ScaleInPaused"
	CodeScaleOutPaused           Code = "ScaleOutPaused"
	CodeMinReplicas              Code = "MinReplicas"
	CodeCapacityUnknown          Code = "CapacityUnknown"
	CodeNoBenefit                Code = "NoBenefit"
	CodeQuotaReached             Code = "QuotaReached"
)

// The codes of held variants. MetricsMissing is also that of a decision if only the scale-down is
// blocked.
const (
	CodeMetricsMissing     Code = "MetricsMissing"
	CodeMetricsStale       Code = "MetricsStale"
	CodeMetricsInvalid     Code = "MetricsInvalid"
	CodeWindowTooShort     Code = "WindowTooShort"
	CodeTargetNotFound     Code = "TargetNotFound"
	CodeTargetUnreadable   Code = "TargetUnreadable"
	CodeInvalidDefinition  Code = "InvalidDefinition"
	CodeModelAlreadyScaled Code = "ModelAlreadyScaled"
	CodeUnsupportedTrigger Code = "UnsupportedTrigger"
	CodeConflictingHPA     Code = "ConflictingHPA"
	CodePlanningFailed     Code = "PlanningFailed"
)

// The codes of notices that no decision has.
const (
	CodeHoldEnded            Code = "HoldEnded"
	CodeSLOInfeasible        Code = "SLOInfeasible"
	CodeMultipleTriggers     Code = "MultipleTriggers"
	CodeInconsistentMetadata Code = "InconsistentMetadata"
	// CodeConfigurationRejected is that of an event on a ConfigMap.
	CodeConfigurationRejected Code = "ConfigurationRejected"
	// CodeNoWakeSignal is also the reason of a condition.
	CodeNoWakeSignal Code = "NoWakeSignal"
)

// The codes of a number that no HPA follows.
const (
	CodeHPAMissing        Code = "HPAMissing"
	CodeHPAInactive       Code = "HPAInactive"
	CodeAmbiguousSelector Code = "AmbiguousSelector"
)

// The codes of findings.
const (
	CodeOtherTriggers           Code = "OtherTriggers"
	CodeTolerance               Code = "Tolerance"
	CodeMaxUnset                Code = "MaxUnset"
	CodeFallbackBehavior        Code = "FallbackBehavior"
	CodeFallbackZero            Code = "FallbackZero"
	CodeFallbackWakes           Code = "FallbackWakes"
	CodeNoPush                  Code = "NoPush"
	CodeFromEnvIgnored          Code = "FromEnvIgnored"
	CodePausedReplicas          Code = "PausedReplicas"
	CodeUnknownAccelerator      Code = "UnknownAccelerator"
	CodeUnknownServiceClass     Code = "UnknownServiceClass"
	CodeServiceClassNotGranted  Code = "ServiceClassNotGranted"
	CodePercentileWithoutLimits Code = "PercentileWithoutObjective"
	CodeOverlappingSelector     Code = "OverlappingSelector"
	CodeScrapedTwice            Code = "ScrapedTwice"
	CodeSharedAdapter           Code = "SharedAdapter"
	CodeTooManyReplicas         Code = "TooManyReplicas"
	CodeSettingLimited          Code = "SettingLimited"
	CodeLabelIgnored            Code = "LabelIgnored"
)

// EventType is how Kubernetes files the event of a code.
type EventType string

// The types of events.
const (
	EventNone    EventType = ""        // no event
	EventNormal  EventType = "Normal"  // for information
	EventWarning EventType = "Warning" // somebody has to act
)

// CodeUse is the place in which a code occurs.
type CodeUse string

// The uses of codes.
const (
	UseDecision CodeUse = "decision" // the reason of a decided variant
	UseHeld     CodeUse = "held"     // the reason of a held variant
	UseNotice   CodeUse = "notice"   // an event that is not the reason of a decision
	UseFinding  CodeUse = "finding"  // something in the definition that reads well and scales badly
	UseFollowed CodeUse = "HPA"      // nobody follows the number
)

// CodeInfo is one row of the table of codes.
type CodeInfo struct {
	Code    Code
	Use     CodeUse
	Meaning string // one sentence
	Action  string // what to do, one sentence
	// Condition is the condition that is False because of the code; empty if there is none.
	Condition ConditionType
	// Event is the type of the event that the code causes on the ScaledObject. The event of a
	// decision is written when the number changes, that of a warning when the situation begins.
	Event EventType
}

// Codes returns the table of codes, in the order in which it is documented.
func Codes() []CodeInfo {
	var table []CodeInfo
	for _, rows := range [][]CodeInfo{decisionCodes(), heldCodes(), noticeCodes(), findingCodes()} {
		table = append(table, rows...)
	}
	return table
}

const nothingToDo = "Nothing."

func decisionCodes() []CodeInfo {
	return []CodeInfo{
		{CodeUnchanged, UseDecision, "The current replicas fit the demand.", nothingToDo, "", EventNormal},
		{CodeScaleUp, UseDecision, "The current demand needs more capacity.", nothingToDo, "", EventNormal},
		{CodeScaleDown, UseDecision, "The highest demand of the peak window needs less capacity.", nothingToDo, "", EventNormal},
		{CodeRebalance, UseDecision, "A cheaper mix of variants can serve the same demand.", nothingToDo, "", EventNormal},
		{CodeScaleToZero, UseDecision, "No request arrived, ran or waited for the whole retention.", "Raise `retention` of the model if this is too early.", "", EventNormal},
		{CodeScaleFromZero, UseDecision, "Requests wait for a model that is scaled to zero.", nothingToDo, "", EventNormal},
		{CodeLastReplica, UseDecision, "The model is idle and keeps one replica on its cheapest variant: it may not scale to zero, or its retention is not over.", "Set minReplicaCount to 0 on every variant, and let a gateway report the model's requests, if it may scale to zero.", "", EventNormal},
		{CodeNotRequested, UseDecision, "The model is scaled to zero and no request was seen, so nothing is started.", nothingToDo, "", EventNormal},
		{CodeMakeBeforeBreak, UseDecision, "Scale-down waits until the replicas that take over are ready.", "If it lasts, look at why the other variant's replicas do not become ready.", "", EventNormal},
		{CodeSaturated, UseDecision, "A replica is at a saturation threshold, so scale-down is blocked.", "If it lasts, raise maxReplicaCount, or look at the replica that the reason names.", "", EventNormal},
		{CodeSLOMissed, UseDecision, "Measured latency is above the latency objective, so scale-down is blocked.", "If it lasts, raise maxReplicaCount, add a variant on a faster accelerator or relax the objective.", "", EventNormal},
		{CodeWindowNotCovered, UseDecision, "Samples do not cover the peak window yet, so scale-down is blocked.", "Wait one peak window; if it lasts, check that Prometheus scrapes the engines without gaps.", "", EventNormal},
		{CodeWindowTooShort, UseDecision, "No request rate is known, because the rate window holds fewer than three scrapes of each replica: scale-down is blocked, queues scale up.", "Scrape every 5 to 60 s; right after an outage it passes by itself.", ConditionMetricsAvailable, EventNormal},
		{CodeReplicaStuck, UseDecision, "A replica has a queue and made no progress for the whole peak window while others serve: it is no capacity, and its queue is no demand.", "Look at the replica that the reason names, and delete it if it does not recover.", "", EventWarning},
		{CodeMinLifetime, UseDecision, "Replicas that started recently are kept: starting them again would cost more than stopping them saves.", "Lower `scaleDown.minReplicaLifetime` if this is too long.", "", EventNormal},
		{CodeStartsForCurrentDemand, UseDecision, "The highest demand of the peak window needs more replicas, but it is over: nothing is started for it.", nothingToDo, "", EventNormal},
		{CodeNotStarting, UseDecision, "Replicas are not ready after twice their usual start-up time, or get no node in the time that one takes: they are not counted as capacity, and no more of them are asked for. Of Pending ones, one stays.", "Look at the events of the pods that the reason names.", "", EventWarning},
		{CodeActivation, UseDecision, "The annotation autoscaling.keda.sh/force-activation keeps at least one replica.", "Remove the annotation if the variant may scale to zero.", "", EventNormal},
		{CodeScaleInPaused, UseDecision, "The annotation autoscaling.keda.sh/paused-scale-in blocks scale-down.", "Remove the annotation.", "", EventNormal},
		{CodeScaleOutPaused, UseDecision, "The annotation autoscaling.keda.sh/paused-scale-out blocks scale-up.", "Remove the annotation.", "", EventNormal},
		{CodeMinReplicas, UseDecision, "minReplicaCount keeps more replicas than the demand needs.", "Lower minReplicaCount if they are not needed.", "", EventNormal},
		{CodeCapacityUnknown, UseDecision, "The capacity of a replica is not known, so no further ones are started.", "If it lasts, check that its replicas report, or configure a profile.", "", EventNormal},
		{CodeNoBenefit, UseDecision, "Another replica would get requests that other variants serve within their objective, so it would not help.", nothingToDo, "", EventNormal},
		{CodeQuotaReached, UseDecision, "A ResourceQuota of the namespace, a ClusterQueue of Kueue, or `maxAccelerators` of the configuration admits no further pods of the variant.", "Raise the quota or the maximum, or remove pods that do not need it.", "", EventWarning},
		{CodeMaxReplicas, UseDecision, "The demand needs more replicas than maxReplicaCount of the model's variants allows.", "Raise maxReplicaCount or add a variant.", "", EventWarning},
		{CodeInsufficientAccelerators, UseDecision, "The demand needs more accelerators than are free.", "Add nodes, add a variant on another accelerator type, or let a node autoscaler add nodes. If one adds nodes that WVA cannot see, name the type in `elasticAccelerators`.", "", EventWarning},
		{CodeProbe, UseDecision, "One replica is started to measure its capacity, which is not known yet.", nothingToDo, "", EventNormal},
		{CodeDuplicateTarget, UseDecision, "An older ScaledObject scales the same workload; its number is repeated.", "Delete one of the two ScaledObjects.", ConditionTargetResolved, EventWarning},
		{CodePaused, UseDecision, "An annotation of KEDA on the ScaledObject fixes the number.", "Remove the annotation to have the variant scaled.", ConditionOptimizationReady, EventNormal},
	}
}

func heldCodes() []CodeInfo {
	return []CodeInfo{
		{CodeMetricsMissing, UseHeld, "Metrics of ready replicas or of the gateway are missing. As the code of a decision it says that scale-down is blocked for the same cause.", "Check that Prometheus answers and scrapes the engines, and that servedModelName is the model's name in their metrics.", ConditionMetricsAvailable, EventWarning},
		{CodeMetricsStale, UseHeld, "The last samples of ready replicas are too old to act on.", "Check that Prometheus scrapes the engines.", ConditionMetricsAvailable, EventWarning},
		{CodeMetricsInvalid, UseHeld, "Engines of ready replicas report NaN or an infinite value.", "Look at the engine's /metrics page; restart the replica if it stays.", ConditionMetricsAvailable, EventWarning},
		{CodeTargetNotFound, UseHeld, "The workload that scaleTargetRef names was not found.", "Correct scaleTargetRef or create the workload.", ConditionTargetResolved, EventWarning},
		{CodeTargetUnreadable, UseHeld, "The workload of a variant of the model, or its pods, cannot be read from the API server now.", "Grant the permission that the reason names, or wait until the API server answers.", ConditionOptimizationReady, EventWarning},
		{CodeInvalidDefinition, UseHeld, "The ScaledObject has validation errors.", "Correct the key that the reason names.", ConditionDefinitionAccepted, EventWarning},
		{CodeModelAlreadyScaled, UseHeld, "Dry run only: other variants of the model are scaled by ScaledObjects already.", "Give the workload a ScaledObject with a WVA trigger, so that all variants of the model are decided together.", ConditionOptimizationReady, EventNone},
		{CodeUnsupportedTrigger, UseHeld, "KEDA would not apply the number as it is meant: metricType is not AverageValue, scalingModifiers are set, or the object is a ScaledJob.", "Remove metricType or scalingModifiers, or use a ScaledObject.", ConditionDefinitionAccepted, EventWarning},
		{CodeConflictingHPA, UseHeld, "Another HorizontalPodAutoscaler scales the same workload.", "Delete it, or let KEDA adopt it.", ConditionOptimizationReady, EventWarning},
		{CodePlanningFailed, UseHeld, "Deciding the model failed by a defect of the server. Other models are decided.", "Report the server's log line \"model crashed, held\" with a snapshot (`dumpSnapshot`).", ConditionOptimizationReady, EventWarning},
	}
}

func noticeCodes() []CodeInfo {
	return []CodeInfo{
		{CodeHoldEnded, UseNotice, "A held variant is decided again.", nothingToDo, "", EventNormal},
		{CodeSLOInfeasible, UseNotice, "The latency objective cannot be met on this variant at any useful load.", "Relax ttft or itl to the value that the message names, or use a faster accelerator.", ConditionOptimizationReady, EventWarning},
		{CodeMultipleTriggers, UseNotice, "One ScaledObject has several WVA triggers.", "Give each model a ScaledObject of its own.", ConditionOptimizationReady, EventWarning},
		{CodeInconsistentMetadata, UseNotice, "ScaledObjects contradict each other; the older one is used.", "Make the values that the message names the same.", "", EventWarning},
		{CodeNoWakeSignal, UseNotice, "The model is scaled to zero, and no gateway reports requests for it: nothing would start it.", "Let a gateway report the model's requests to Prometheus, or set minReplicaCount to 1 on one variant.", ConditionOptimizationReady, EventWarning},
		{CodeConfigurationRejected, UseNotice, "A key of a ConfigMap with configuration is invalid, so it is not used; the event is on the ConfigMap. Its last valid text stays in use until the server restarts.", "Correct the key; the event has all validation errors.", "", EventWarning},
		{CodeHPAMissing, UseFollowed, "KEDA has made no HPA for the ScaledObject, so nobody applies the number.", "Look at the conditions and events of the ScaledObject, and at the log of KEDA's operator.", ConditionAutoscalerActive, EventWarning},
		{CodeHPAInactive, UseFollowed, "The HPA of the ScaledObject cannot read its metric or its target, so it does not apply the number.", "Look at the conditions of the HPA: kubectl describe hpa.", ConditionAutoscalerActive, EventWarning},
		{CodeAmbiguousSelector, UseFollowed, "The workload's selector matches pods of another HPA's target, so Kubernetes scales neither.", "Give each workload a selector that matches only its own pods.", ConditionAutoscalerActive, EventWarning},
	}
}

func findingCodes() []CodeInfo {
	accepted := ConditionDefinitionAccepted
	return []CodeInfo{
		{CodeOtherTriggers, UseFinding, "The ScaledObject has triggers of other scalers: the HPA applies the largest number of all.", "Remove the other triggers.", accepted, EventWarning},
		{CodeTolerance, UseFinding, "The HPA's tolerance hides steps of one replica.", "Set behavior.scaleUp.tolerance and behavior.scaleDown.tolerance to \"0\".", accepted, EventWarning},
		{CodeMaxUnset, UseFinding, "maxReplicaCount is not set: KEDA allows 100 replicas.", "Set maxReplicaCount.", accepted, EventWarning},
		{CodeFallbackBehavior, UseFinding, "With this fallback.behavior, errors can scale the variant down.", "Set fallback.behavior to currentReplicasIfHigher.", accepted, EventWarning},
		{CodeFallbackZero, UseFinding, "fallback.replicas is 0: errors can scale the variant to zero.", "Raise fallback.replicas or remove fallback.", accepted, EventWarning},
		{CodeFallbackWakes, UseFinding, "With fallback, errors start a variant that is scaled to zero.", "Remove fallback.", accepted, EventWarning},
		{CodeNoPush, UseFinding, "The trigger type is external and the variant may go to zero: scaling from zero waits for KEDA's poll.", "Set the trigger type to external-push.", accepted, EventWarning},
		{CodeFromEnvIgnored, UseFinding, "A key of WVA ends in FromEnv, which is not read.", "Write the value into the metadata without FromEnv.", accepted, EventWarning},
		{CodePausedReplicas, UseFinding, "The annotation autoscaling.keda.sh/paused-replicas is not a number that KEDA can read.", "Write a whole number, or remove the annotation.", accepted, EventWarning},
		{CodeUnknownAccelerator, UseFinding, "The accelerator is neither in the catalogue nor on any node.", "Correct `accelerator`, or add a row to `accelerators` of the configuration.", accepted, EventWarning},
		{CodeUnknownServiceClass, UseFinding, "The service class is not configured: the variant has the default priority.", "Correct `serviceClass`, or add a row to `serviceClasses` of the configuration.", accepted, EventWarning},
		{CodeServiceClassNotGranted, UseFinding, "The service class is not granted to the namespace: the variant has the default priority.", "Add the namespace to `namespaces` of the class in the configuration, or remove serviceClass.", accepted, EventWarning},
		{CodeOverlappingSelector, UseFinding, "The selector of the target's scale also matches pods of another target. A pod belongs to the target that owns it, else to the one with the oldest ScaledObject.", "Narrow the selector, or remove one of the two ScaledObjects.", accepted, EventWarning},
		{CodeScrapedTwice, UseFinding, "Several jobs of Prometheus scrape one pod of the variant. It counts once.", "Remove one of the PodMonitors, ServiceMonitors or scrape jobs that select it.", accepted, EventWarning},
		{CodeSharedAdapter, UseFinding, "An adapter has a name of another model of the namespace, or of an adapter on an older one. Requests for it at the gateway are demand of that model.", "Give the adapter a name of its own, or remove it from `adapters`.", accepted, EventWarning},
		{CodeTooManyReplicas, UseFinding, "A number of replicas that the ScaledObject or its target states is above 100000, which is used instead.", "Write a number of replicas that the cluster can run.", accepted, EventWarning},
		{CodeSettingLimited, UseFinding, "A ConfigMap of the namespace sets more than the administrator grants. The administrator's limit is used.", "Lower the value that the finding names, or let the administrator raise the limit.", accepted, EventWarning},
		{CodeLabelIgnored, UseFinding, "A label of the pod template, `llm-d.ai/role` or `llm-d.ai/engine-type`, has a value that is not known, or contradicts the definition or the command line. It is not used.", "Correct the label, or the key that contradicts it.", accepted, EventWarning},
		{CodePercentileWithoutLimits, UseFinding, "A percentile is given without ttft or itl, so it has no effect.", "Set ttft or itl, or remove percentile.", accepted, EventWarning},
	}
}
