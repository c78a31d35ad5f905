package fleet

import "strings"

// Condition is one fact about a variant, in the form that Kubernetes has for it.
type Condition struct {
	Type   ConditionType
	Status ConditionStatus
	// Reason is a stable name: the decision's code if that is the cause.
	Reason string
	// Text is one line for people. If the status is False it ends with the remedy.
	Text string
}

// ConditionType names a condition.
type ConditionType string

// The conditions. Every variant has each of them.
const (
	// ConditionTargetResolved: the workload was found, and this variant scales it.
	ConditionTargetResolved ConditionType = "TargetResolved"
	// ConditionMetricsAvailable: the engines of ready replicas report.
	ConditionMetricsAvailable ConditionType = "MetricsAvailable"
	// ConditionOptimizationReady: the number follows from the demand, and the SLO can be met.
	ConditionOptimizationReady ConditionType = "OptimizationReady"
	// ConditionDefinitionAccepted: the definition is valid and supported, and has no findings.
	ConditionDefinitionAccepted ConditionType = "DefinitionAccepted"
	// ConditionAutoscalerActive: an HPA of KEDA applies the number.
	ConditionAutoscalerActive ConditionType = "AutoscalerActive"
)

// ConditionStatus says whether a condition is met.
type ConditionStatus string

// The states of a condition.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// Conditions returns the variant's conditions in the order of the constants. They follow from
// the decision alone.
func (d Decision) Conditions() []Condition {
	return []Condition{
		d.targetResolved(), d.metricsAvailable(), d.optimizationReady(), d.definitionAccepted(), d.autoscalerActive(),
	}
}

func (d Decision) targetResolved() Condition {
	c := Condition{Type: ConditionTargetResolved, Status: ConditionFalse}
	switch {
	case d.Reason.Code == CodeDuplicateTarget:
		c.Reason, c.Text = string(CodeDuplicateTarget), d.Reason.String()
	case d.Facts.Target.Name == "":
		c.Reason, c.Text = "NoTarget", "the object names no workload; scale one with a ScaledObject"
	case !d.Facts.CurrentKnown && d.Reason.Code == CodeTargetUnreadable:
		c.Status, c.Reason, c.Text = ConditionUnknown, string(CodeTargetUnreadable), d.Reason.String()
	case !d.Facts.CurrentKnown:
		c.Reason, c.Text = string(CodeTargetNotFound), d.Facts.Target.String()+" not found; check scaleTargetRef, and that the workload exists"
	default:
		c.Status, c.Reason, c.Text = ConditionTrue, "TargetFound", d.Facts.Target.String()+" found"
	}
	return c
}

func (d Decision) metricsAvailable() Condition {
	c := Condition{Type: ConditionMetricsAvailable, Status: ConditionUnknown}
	_, reported := d.Facts.Saturation.Known()
	switch code := d.Reason.Code; {
	case code == CodeMetricsMissing, code == CodeMetricsStale, code == CodeMetricsInvalid, code == CodeWindowTooShort:
		c.Status, c.Reason, c.Text = ConditionFalse, string(code), d.Reason.String()
	case reported:
		c.Status, c.Reason, c.Text = ConditionTrue, "MetricsReported", "the engines of ready replicas report"
	case d.Held:
		c.Reason, c.Text = "NotEvaluated", "held for another reason, so metrics were not evaluated"
	case d.Facts.Ready == 0:
		c.Status, c.Reason, c.Text = ConditionTrue, "NoReadyReplica", "0 replicas are ready, so none has to report"
	default:
		c.Reason, c.Text = "NotReportedYet", "ready replicas have not reported enough samples yet to know their capacity"
	}
	return c
}

func (d Decision) optimizationReady() Condition {
	c := Condition{Type: ConditionOptimizationReady, Status: ConditionFalse, Reason: string(d.Reason.Code), Text: d.Reason.String()}
	switch {
	case d.Held || d.Reason.Code == CodeDuplicateTarget || d.Reason.Code == CodePaused:
	case d.Facts.NoWakeSignal:
		c.Reason, c.Text = string(CodeNoWakeSignal), noWakeSignal
	case d.Facts.Infeasible != "":
		c.Reason, c.Text = string(CodeSLOInfeasible), d.Facts.Infeasible
	default:
		c.Status, c.Reason = ConditionTrue, "Optimized"
	}
	return c
}

// noWakeSignal is the text of a model at zero that nothing would start. It has no figures, so it
// stays the same while the situation lasts.
const noWakeSignal = "scaled to zero, and no gateway reports requests for this model, so nothing would start it; " +
	"let a gateway report its requests to Prometheus, or set minReplicaCount to 1 on one variant"

func (d Decision) definitionAccepted() Condition {
	c := Condition{Type: ConditionDefinitionAccepted, Status: ConditionTrue, Reason: "NoFindings", Text: "no findings in the definition"}
	switch code := d.Reason.Code; {
	case code == CodeInvalidDefinition, code == CodeUnsupportedTrigger:
		c.Status, c.Reason, c.Text = ConditionFalse, string(code), d.Reason.String()
		return c
	case len(d.Findings) == 0:
		return c
	}
	lines := make([]string, len(d.Findings))
	for i, f := range d.Findings {
		lines[i] = string(f.Code) + ": " + f.String()
	}
	c.Status, c.Reason, c.Text = ConditionFalse, string(d.Findings[0].Code), strings.Join(lines, ". ")
	return c
}

func (d Decision) autoscalerActive() Condition {
	a := d.Facts.Autoscaler
	switch {
	case !a.Observed:
		return Condition{ConditionAutoscalerActive, ConditionUnknown, "NotObserved", "the HPA of the ScaledObject was not observed"}
	case a.Code != "":
		return Condition{ConditionAutoscalerActive, ConditionFalse, string(a.Code), a.Text}
	default:
		return Condition{ConditionAutoscalerActive, ConditionTrue, "HPAActive", "the HPA of the ScaledObject applies the number"}
	}
}
