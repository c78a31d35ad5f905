package scaler

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// changeLog logs the changes from plan to plan: one line for each number that changed, and for each
// hold, finding, inactive autoscaler and failure of a source one line when it begins and one when
// it ends. It remembers its lines, so that nothing is repeated however long it lasts. A new
// changeLog logs everything that exists once.
type changeLog struct {
	logger      *slog.Logger
	codes       map[fleet.Code]fleet.CodeInfo
	failure     sourceFailure
	holds       map[fleet.VariantID]hold
	findings    map[fleet.VariantID][]fleet.Finding
	autoscalers map[fleet.VariantID]fleet.Code
}

// hold is a held variant.
type hold struct {
	// code and text are those of the last line that was logged; empty if none was.
	code  fleet.Code
	text  string
	since time.Time // of the first cycle that held the variant, whether it was logged or not
	// suppressed is true if a failure of a source of metrics explains the hold: the line about the
	// source stands for all such variants.
	suppressed bool
}

// cycleChange is one cycle, with the boards before and after it.
type cycleChange struct {
	number           uint64
	missing          []fleet.Missing
	previous, latest *boardState
}

func newChangeLog(logger *slog.Logger) *changeLog {
	c := &changeLog{
		logger:      logger,
		codes:       make(map[fleet.Code]fleet.CodeInfo),
		holds:       make(map[fleet.VariantID]hold),
		findings:    make(map[fleet.VariantID][]fleet.Finding),
		autoscalers: make(map[fleet.VariantID]fleet.Code),
	}
	for _, info := range fleet.Codes() {
		c.codes[info.Code] = info
	}
	return c
}

// write logs the changes of a cycle.
func (c *changeLog) write(change cycleChange) {
	log := c.logger.With("cycle", change.number)
	now, latest := change.latest.plan.Time, change.latest
	c.writeSources(log, change)
	writeTargets(log, change.previous, latest)
	present := make(map[fleet.VariantID]bool, len(latest.listed))
	for _, d := range latest.listed {
		present[d.Variant] = true
		c.writeHold(log, now, d)
		c.writeFindings(log, d)
		c.writeAutoscaler(log, d)
	}
	c.writeRemoved(log, now, present)
	held := latest.plan.Held()
	log.Debug("cycle done", "decided", len(latest.plan.Decisions)-held, "held", held, "cost", latest.plan.Cost)
}

// writeTargets logs each number that differs from the previous plan, or else from the cluster.
func writeTargets(log *slog.Logger, previous, latest *boardState) {
	for _, d := range latest.decisions {
		from, known := previous.replicas(d)
		if !d.Known || known && from == d.Replicas {
			continue
		}
		attributes := []any{"variant", d.Variant.String()}
		if known {
			attributes = append(attributes, "from", from)
		}
		log.Info("target changed", append(append(attributes, "to", d.Replicas), reasonAttributes(d.Reason)...)...)
	}
}

// replicas returns the number of replicas before a new decision: the decided one, or else the
// current one.
func (s *boardState) replicas(d fleet.Decision) (replicas int, known bool) {
	if old, found := s.lookup(d.Variant); found && old.Known {
		return old.Replicas, true
	}
	return d.Facts.Current, d.Facts.CurrentKnown
}

func reasonAttributes(reason fleet.Reason) []any {
	attributes := []any{"code", string(reason.Code), "text", reason.Text}
	if len(reason.Details) > 0 {
		var details []any
		for _, d := range reason.Details {
			details = append(details, string(d.Name), d.Text)
		}
		attributes = append(attributes, slog.Group("details", details...))
	}
	return attributes
}

// writeHold logs a hold that began, ended or has another code. Its figures may change in between. A
// hold that a failure of a source of metrics explains is not logged.
func (c *changeLog) writeHold(log *slog.Logger, now time.Time, d listed) {
	before, found := c.holds[d.Variant]
	if !d.Held {
		if found {
			c.endHold(log, now, d.Variant, before)
		}
		return
	}
	if !found {
		before.since = now
	}
	code := d.Reason.Code
	if c.failure.explains(code) || before.suppressed && c.failure.recoveryExplains(code, now) {
		before.suppressed = true
		c.holds[d.Variant] = before
		return
	}
	after := hold{code: code, text: before.text, since: before.since}
	if before.code != code {
		after.text = d.Reason.Text
		attributes := append(about(d), reasonAttributes(d.Reason)...)
		if d.Known {
			attributes = append(attributes, "replicas", d.Replicas)
		}
		if before.code == "" {
			writer(log, c.level(code))("variant held", attributes...)
		} else {
			writer(log, c.level(code))("hold changed", append(attributes, "previousCode", string(before.code))...)
		}
	}
	c.holds[d.Variant] = after
}

// endHold forgets a hold, and logs its end if its beginning was logged.
func (c *changeLog) endHold(log *slog.Logger, now time.Time, id fleet.VariantID, h hold) {
	delete(c.holds, id)
	if h.code != "" {
		writer(log, min(c.level(h.code), slog.LevelInfo))("hold ended",
			"variant", id.String(), "code", string(h.code), "text", h.text, "duration", now.Sub(h.since))
	}
}

// ofMetrics reports whether a code of a hold says that metrics are missing or cannot be used.
func (c *changeLog) ofMetrics(code fleet.Code) bool {
	info := c.codes[code]
	return info.Use == fleet.UseHeld && info.Condition == fleet.ConditionMetricsAvailable
}

// level is that of the event that the code causes: people who have to act find it as a warning.
func (c *changeLog) level(code fleet.Code) slog.Level {
	switch info, known := c.codes[code]; {
	case !known || info.Event == fleet.EventWarning:
		return slog.LevelWarn
	case info.Event == fleet.EventNormal:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}

// writer returns the method of a logger that writes lines of a level.
func writer(log *slog.Logger, level slog.Level) func(message string, attributes ...any) {
	switch level {
	case slog.LevelWarn:
		return log.Warn
	case slog.LevelInfo:
		return log.Info
	default:
		return log.Debug
	}
}

// writeFindings logs the findings that are new and those that are gone.
func (c *changeLog) writeFindings(log *slog.Logger, d listed) {
	before := c.findings[d.Variant]
	c.endFindings(log, d.Variant, before, d.Findings)
	for _, f := range d.Findings {
		if !slices.Contains(before, f) {
			writer(log, c.level(f.Code))("finding", append(about(d), "code", string(f.Code), "text", f.Text, "remedy", f.Remedy)...)
		}
	}
	if len(d.Findings) > 0 {
		c.findings[d.Variant] = d.Findings
	} else {
		delete(c.findings, d.Variant)
	}
}

func (c *changeLog) endFindings(log *slog.Logger, id fleet.VariantID, before, after []fleet.Finding) {
	for _, f := range before {
		if !slices.Contains(after, f) {
			log.Info("finding ended", "variant", id.String(), "code", string(f.Code), "text", f.Text)
		}
	}
}

// writeAutoscaler logs if an HPA stops or begins to apply the numbers. An HPA that was not observed
// is neither.
func (c *changeLog) writeAutoscaler(log *slog.Logger, d listed) {
	state, before := d.Facts.Autoscaler, c.autoscalers[d.Variant]
	switch {
	case !state.Observed || state.Code == before:
	case state.Code == "":
		delete(c.autoscalers, d.Variant)
		log.Info("autoscaler active again", append(about(d), "code", string(before))...)
	default:
		c.autoscalers[d.Variant] = state.Code
		writer(log, c.level(state.Code))("autoscaler not active", append(about(d), "code", string(state.Code), "text", state.Text)...)
	}
}

// writeRemoved ends the holds and findings of variants that the plan does not have any more.
func (c *changeLog) writeRemoved(log *slog.Logger, now time.Time, present map[fleet.VariantID]bool) {
	log = log.With("removed", true)
	for _, id := range missingFrom(present, c.holds) {
		c.endHold(log, now, id, c.holds[id])
	}
	for _, id := range missingFrom(present, c.findings) {
		c.endFindings(log, id, c.findings[id], nil)
		delete(c.findings, id)
	}
	for _, id := range missingFrom(present, c.autoscalers) {
		delete(c.autoscalers, id)
	}
}

// missingFrom returns the variants of a map that are not present, sorted.
func missingFrom[V any](present map[fleet.VariantID]bool, rows map[fleet.VariantID]V) []fleet.VariantID {
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(rows)), func(id fleet.VariantID) bool { return present[id] })
	slices.SortFunc(gone, fleet.VariantID.Compare)
	return gone
}

// about returns the attributes that name a variant.
func about(d listed) []any {
	if d.dryRun {
		return []any{"variant", d.Variant.String(), "dryRun", true}
	}
	return []any{"variant", d.Variant.String()}
}
