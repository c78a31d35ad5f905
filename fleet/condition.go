package fleet

// Condition is one thing that people and machines want to know of a variant, in the form that Kubernetes has for it.
type Condition struct {
	Type   ConditionType
	Status ConditionStatus
	// Reason is a stable name: that of the decision's code where it is the cause.
	Reason string
	// Text says it for people. Where the status is False it ends with the remedy.
	Text string
}

// ConditionType names a condition.
type ConditionType string

// The conditions, each of which every variant has.
const (
	ConditionTargetResolved    ConditionType = "TargetResolved"    // the workload was found, and is the variant's to scale
	ConditionMetricsAvailable  ConditionType = "MetricsAvailable"  // what has to report does
	ConditionOptimizationReady ConditionType = "OptimizationReady" // the number is derived from the demand, and the objective can be met
)

// ConditionStatus says whether a condition holds.
type ConditionStatus string

// The states of a condition.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// Conditions returns the variant's conditions in the order of the constants. They follow from the decision's code and facts
// alone.
func (d Decision) Conditions() []Condition {
	return []Condition{d.targetResolved(), d.metricsAvailable(), d.optimizationReady()}
}

func (d Decision) targetResolved() Condition {
	c := Condition{Type: ConditionTargetResolved, Status: ConditionFalse}
	switch {
	case d.Reason.Code == CodeTargetClaimed:
		c.Reason, c.Text = string(CodeTargetClaimed), d.Reason.Text
	case d.Facts.Target.Name == "":
		c.Reason, c.Text = "NoTarget", "the object names no workload; scale one with a ScaledObject"
	case !d.Facts.CurrentKnown && d.Reason.Code == CodeWorkloadHidden:
		c.Status, c.Reason, c.Text = ConditionUnknown, string(CodeWorkloadHidden), d.Reason.Text
	case !d.Facts.CurrentKnown:
		c.Reason, c.Text = "TargetNotFound", d.Facts.Target.String()+" was not found; check scaleTargetRef, and that the workload exists"
	default:
		c.Status, c.Reason, c.Text = ConditionTrue, "TargetFound", d.Facts.Target.String()+" was found"
	}
	return c
}

func (d Decision) metricsAvailable() Condition {
	c := Condition{Type: ConditionMetricsAvailable, Status: ConditionUnknown}
	_, reported := d.Facts.Saturation.Known()
	switch code := d.Reason.Code; {
	case code == CodeMetricsMissing, code == CodeMetricsStale, code == CodeMetricsInvalid, code == CodeWindowTooShort:
		c.Status, c.Reason, c.Text = ConditionFalse, string(code), d.Reason.Text
	case reported:
		c.Status, c.Reason, c.Text = ConditionTrue, "MetricsReported", "the engines of ready replicas report"
	case d.Held:
		c.Reason, c.Text = "NotEvaluated", "the variant is held for another reason, so its metrics were not looked at"
	case d.Facts.Ready == 0:
		c.Status, c.Reason, c.Text = ConditionTrue, "NothingToReport", "no replica is ready, so none has to report"
	default:
		c.Reason, c.Text = "NotReportedYet", "replicas are ready, and have not reported enough yet to tell what they carry"
	}
	return c
}

func (d Decision) optimizationReady() Condition {
	c := Condition{Type: ConditionOptimizationReady, Status: ConditionFalse, Reason: string(d.Reason.Code), Text: d.Reason.Text}
	switch {
	case d.Held || d.Reason.Code == CodeTargetClaimed || d.Reason.Code == CodePaused:
	case d.Facts.Infeasible != "":
		c.Reason, c.Text = string(CodeInfeasible), d.Facts.Infeasible
	default:
		c.Status, c.Reason = ConditionTrue, "Optimized"
	}
	return c
}
