package scaler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wva-project/wva/fleet"
)

// variantLabels are the labels of every series about a variant.
var variantLabels = []string{"namespace", "target_name", "target_kind", "model", "accelerator"}

// boardMetrics shows the plan on the board as gauges. Each scrape reads the board, so that the
// series of a deleted object end with it. A plan that is too old shows its age and nothing else.
type boardMetrics struct {
	board *Board

	desired     *prometheus.Desc
	current     *prometheus.Desc
	saturation  *prometheus.Desc
	decision    *prometheus.Desc
	condition   *prometheus.Desc
	held        *prometheus.Desc
	conflicts   *prometheus.Desc
	recommended *prometheus.Desc
	attainment  *prometheus.Desc
	headroom    *prometheus.Desc
	age         *prometheus.Desc
}

func newBoardMetrics(board *Board) *boardMetrics {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &boardMetrics{
		board:      board,
		desired:    describe("wva_desired_replicas", "Replicas that KEDA gets: decided, or kept if the variant is held; absent if KEDA gets an error.", variantLabels...),
		current:    describe("wva_current_replicas", "Replicas in the spec of the workload; absent if unknown.", variantLabels...),
		saturation: describe("wva_saturation_level", "Load of the ready replicas over their capacity, 1 at the limit; absent if unknown.", variantLabels...),
		decision: describe("wva_scaling_decision", "1 for the latest decision: up, down, none (also if current replicas are unknown) or hold, and the code of its reason.",
			append(slices.Clone(variantLabels), "decision", "reason")...),
		condition: describe("wva_condition", "1 if the condition of the variant is True, 0 if it is False; absent if it is Unknown.",
			append(slices.Clone(variantLabels), "type")...),
		held:        describe("wva_held_variants", "Variants whose replicas are kept because they cannot be decided, by the code of the reason; absent if there is none.", "reason"),
		conflicts:   describe("wva_conflicts", "Conflicts between definitions, or with other autoscalers, by type; absent if there is none.", "type"),
		recommended: describe("wva_recommended_replicas", "Replicas that are recommended for a dry-run variant; absent if unknown.", variantLabels...),
		attainment:  describe("wva_model_slo_attainment_ratio", "Share of the requests of the error budget's window that met the latency objective of the model; absent if unknown.", "namespace", "model"),
		headroom:    describe("wva_model_headroom_factor", "Factor by which the error budget corrects the headroom of the model; absent if it corrects nothing.", "namespace", "model"),
		age:         describe("wva_plan_age_seconds", "Time since the snapshot of the latest plan; absent before the first plan."),
	}
}

// Describe implements prometheus.Collector.
func (m *boardMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.desired, m.current, m.saturation, m.decision, m.condition, m.held, m.conflicts, m.recommended, m.attainment, m.headroom, m.age} {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector.
func (m *boardMetrics) Collect(metrics chan<- prometheus.Metric) {
	latest := m.board.latest.Load()
	age, posted := m.board.age(latest)
	if !posted {
		return
	}
	metrics <- gauge(m.age, age.Seconds())
	if m.board.ready(latest) != nil {
		return
	}
	held := make(map[fleet.Code]int)
	for _, d := range latest.decisions {
		if d.Held {
			held[d.Reason.Code]++
		}
	}
	for code, count := range held {
		metrics <- gauge(m.held, float64(count), validLabel(string(code)))
	}
	conflicts := make(map[fleet.ConflictType]int)
	for _, c := range latest.plan.Conflicts {
		conflicts[c.Type]++
	}
	for conflictType, count := range conflicts {
		metrics <- gauge(m.conflicts, float64(count), validLabel(string(conflictType)))
	}
	for _, d := range distinct(latest.decisions) {
		m.collectVariant(metrics, d)
	}
	m.collectRecommendations(metrics, latest.listed)
	m.collectModels(metrics, latest.plan.Models)
}

// collectModels shows the error budget of each model.
func (m *boardMetrics) collectModels(metrics chan<- prometheus.Metric, models []fleet.ModelPlan) {
	for _, row := range models {
		namespace, name := validLabel(row.ID.Namespace), validLabel(row.ID.Name)
		if share, known := row.Attainment.Known(); known {
			metrics <- gauge(m.attainment, share, namespace, name)
		}
		if factor, known := row.Headroom.Known(); known {
			metrics <- gauge(m.headroom, factor, namespace, name)
		}
	}
}

func (m *boardMetrics) collectRecommendations(metrics chan<- prometheus.Metric, all []listed) {
	var recommended []fleet.Decision
	for _, d := range all {
		if d.dryRun && d.Known {
			recommended = append(recommended, d.Decision)
		}
	}
	for _, d := range distinct(recommended) {
		labels := labelsOf(d)
		metrics <- gauge(m.recommended, float64(d.Replicas), labels[:]...)
	}
}

func (m *boardMetrics) collectVariant(metrics chan<- prometheus.Metric, d fleet.Decision) {
	labels := labelsOf(d)
	if d.Known && !d.Unsupported {
		metrics <- gauge(m.desired, float64(d.Replicas), labels[:]...)
	}
	if d.Facts.CurrentKnown {
		metrics <- gauge(m.current, float64(d.Facts.Current), labels[:]...)
	}
	if level, known := d.Facts.Saturation.Known(); known {
		metrics <- gauge(m.saturation, level, labels[:]...)
	}
	metrics <- gauge(m.decision, 1, append(labels[:], direction(d), validLabel(string(d.Reason.Code)))...)
	for _, c := range d.Conditions() {
		switch c.Status {
		case fleet.ConditionTrue:
			metrics <- gauge(m.condition, 1, append(labels[:], string(c.Type))...)
		case fleet.ConditionFalse:
			metrics <- gauge(m.condition, 0, append(labels[:], string(c.Type))...)
		case fleet.ConditionUnknown: // no series
		}
	}
}

// distinct returns one decision for each set of labels: two series with equal labels would fail the
// whole scrape. If two ScaledObjects claim one workload it is the decision of the owner, else the
// first by variant.
func distinct(decisions []fleet.Decision) []fleet.Decision {
	ownersFirst := slices.Clone(decisions)
	slices.SortStableFunc(ownersFirst, func(a, b fleet.Decision) int { return cmp.Compare(claims(a), claims(b)) })
	seen := make(map[[5]string]bool, len(decisions))
	return slices.DeleteFunc(ownersFirst, func(d fleet.Decision) bool {
		labels := labelsOf(d)
		again := seen[labels]
		seen[labels] = true
		return again
	})
}

func claims(d fleet.Decision) int {
	if d.Reason.Code == fleet.CodeDuplicateTarget {
		return 1
	}
	return 0
}

func labelsOf(d fleet.Decision) [5]string {
	return [5]string{
		validLabel(d.Variant.Namespace),
		validLabel(d.Facts.Target.Name),
		validLabel(d.Facts.Target.Kind),
		validLabel(d.Facts.Model.Name),
		validLabel(string(d.Facts.Accelerator)),
	}
}

// validLabel returns a string as valid UTF-8: any other label would fail the whole scrape.
func validLabel(value string) string { return strings.ToValidUTF8(value, "\uFFFD") }

func direction(d fleet.Decision) string {
	switch {
	case d.Held:
		return "hold"
	case d.Facts.CurrentKnown && d.Replicas > d.Facts.Current:
		return "up"
	case d.Facts.CurrentKnown && d.Replicas < d.Facts.Current:
		return "down"
	}
	return "none"
}

func gauge(description *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
}

// loopMetrics counts the cycles, triggers and polls of the loop.
type loopMetrics struct {
	cycles   *prometheus.CounterVec
	duration prometheus.Histogram
	solves   prometheus.Histogram
	triggers *prometheus.CounterVec
	polls    *prometheus.CounterVec
	dryRun   dryRunMetrics
}

func newLoopMetrics() *loopMetrics {
	m := &loopMetrics{
		dryRun: newDryRunMetrics(),
		cycles: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_cycles_total", Help: "Cycles of the loop by result: ok, error or panic.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "wva_cycle_duration_seconds", Help: "Duration of a cycle.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 13), // 5 ms to 20 s
		}),
		solves: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "wva_plan_solver_calls", Help: "Calls of the solver for one plan.",
			Buckets: []float64{0, 1, 2, 3, 4, 5, 6, 12, 24},
		}),
		triggers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_cycle_triggers_total", Help: "Requests for a cycle outside the interval, by reason. Those of one burst share a cycle.",
		}, []string{"reason"}),
		polls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_queue_polls_total", Help: "Polls of the queues of models that are scaled to zero, by result: none, wake or error.",
		}, []string{"result"}),
	}
	for _, result := range []string{resultOK, resultError, resultPanic} {
		m.cycles.WithLabelValues(result)
	}
	return m
}

func (m *loopMetrics) record(result string, took time.Duration) {
	m.cycles.WithLabelValues(result).Inc()
	m.duration.Observe(took.Seconds())
}

func (m *loopMetrics) planned(plan fleet.Plan) { m.solves.Observe(float64(plan.Solves)) }

func pushesMetric(p *pusher) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "wva_pushes_total", Help: "Pushes that were sent to activate inactive objects.",
	}, func() float64 { return float64(p.pushes()) })
}

// register hands collectors to a registerer, if there is one.
func register(registerer prometheus.Registerer, collectors ...prometheus.Collector) error {
	if registerer == nil {
		return nil
	}
	for _, c := range collectors {
		if err := registerer.Register(c); err != nil {
			return fmt.Errorf("registering metrics: %w; give each server and loop its own registry", err)
		}
	}
	return nil
}
