package planner

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// planBuilder builds plans for tests of notices.
type planBuilder struct{ fleet.Plan }

func planAt(minute int) *planBuilder {
	return &planBuilder{fleet.Plan{Time: epoch.Add(time.Duration(minute) * time.Minute)}}
}

func (p *planBuilder) target(name string, replicas int, code fleet.Code, text string) *planBuilder {
	p.Decisions = append(p.Decisions, fleet.Decision{
		Variant: fleet.VariantID{Namespace: "shop", Name: name}, Replicas: replicas, Known: true, Reason: fleet.Reason{Code: code, Text: text},
		Facts: fleet.Facts{Current: 1, CurrentKnown: true},
	})
	return p
}

func (p *planBuilder) held(name string, replicas int, code fleet.Code, text string) *planBuilder {
	p.Decisions = append(p.Decisions, fleet.Decision{
		Variant: fleet.VariantID{Namespace: "shop", Name: name}, Replicas: replicas, Known: true, Held: true, Unsupported: code == fleet.CodeUnsupportedTrigger,
		Reason: fleet.Reason{Code: code, Text: text}, Facts: fleet.Facts{Current: 1, CurrentKnown: true},
	})
	return p
}

func (p *planBuilder) conflict(kind fleet.ConflictType, text string, names ...string) *planBuilder {
	c := fleet.Conflict{Type: kind, Text: text}
	for _, name := range names {
		c.Variants = append(c.Variants, fleet.VariantID{Namespace: "shop", Name: name})
	}
	p.Conflicts = append(p.Conflicts, c)
	return p
}

// lines writes notices as "name Warning Code: text".
func lines(notices []fleet.Notice) []string {
	written := []string{}
	for _, n := range notices {
		kind := "Normal"
		if n.Warning {
			kind = "Warning"
		}
		written = append(written, n.Variant.Name+" "+kind+" "+string(n.Code)+": "+n.Text)
	}
	return written
}

func expectNotices(t *testing.T, before, after *planBuilder, want ...string) {
	t.Helper()
	var plan fleet.Plan
	if before != nil {
		plan = before.Plan
	}
	got := lines(Notices(plan, after.Plan))
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("notices\n%s\nwant lines that begin with\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestChangedNumberIsOneEventWithItsReason(t *testing.T) {
	three := planAt(0).target("a", 3, fleet.CodeUnchanged, "fine").target("b", 1, fleet.CodeUnchanged, "fine")
	five := planAt(1).target("a", 5, fleet.CodeScaleUp, "9 requests/s arrive").target("b", 1, fleet.CodeUnchanged, "fine")
	later := planAt(2).target("a", 5, fleet.CodeUnchanged, "8 requests/s arrive").target("b", 1, fleet.CodeUnchanged, "fine")
	expectNotices(t, three, five, "a Normal ScaleUp: 3 -> 5: 9 requests/s arrive")
	expectNotices(t, five, later)
}

func TestNewVariantIsComparedWithCurrentReplicas(t *testing.T) {
	old := planAt(0).target("a", 3, fleet.CodeUnchanged, "fine")
	both := planAt(1).target("a", 3, fleet.CodeUnchanged, "fine").target("new", 4, fleet.CodeScaleUp, "busy").target("right", 1, fleet.CodeUnchanged, "fine")
	expectNotices(t, old, both, "new Normal ScaleUp: 1 -> 4: busy")
	expectNotices(t, both, old) // a deleted object has no event
}

func TestHoldHasEventsWhenItBeginsAndEnds(t *testing.T) {
	decided := planAt(0).target("a", 3, fleet.CodeUnchanged, "fine")
	missing := planAt(1).held("a", 3, fleet.CodeMetricsMissing, "2 ready replicas have no metrics")
	more := planAt(2).held("a", 3, fleet.CodeMetricsMissing, "3 ready replicas have no metrics (connection refused)")
	stale := planAt(3).held("a", 3, fleet.CodeMetricsStale, "the last samples of 1 ready replica are too old")
	expectNotices(t, decided, missing, "a Warning MetricsMissing: replicas are kept: Metrics")
	expectNotices(t, missing, more) // the warning is the same, whatever its figures
	expectNotices(t, more, stale, "a Warning MetricsStale: replicas are kept")
	expectNotices(t, stale, decided, "a Normal HoldEnded: decided again; MetricsStale is over")
}

func TestChangedValidationErrorIsANewEvent(t *testing.T) {
	cost := planAt(0).held("a", 3, fleet.CodeInvalidDefinition, "variantCost -1 is not a price; set it to 0 or more")
	rangeError := planAt(1).held("a", 3, fleet.CodeInvalidDefinition, "maxReplicaCount 1 is below minReplicaCount 2; raise it")
	expectNotices(t, cost, cost)
	expectNotices(t, cost, rangeError, "a Warning InvalidDefinition: maxReplicaCount")
}

func TestConflictsAndUnsupportedTriggersAreOneEventOnEachVariant(t *testing.T) {
	quiet := planAt(0).target("a", 3, fleet.CodeUnchanged, "fine").target("b", 3, fleet.CodeUnchanged, "fine").held("c", 1, fleet.CodeTargetNotFound, "x")
	loud := planAt(1).target("a", 4, fleet.CodeScaleUp, "busy").target("b", 4, fleet.CodeDuplicateTarget, "belongs to a").
		held("c", 1, fleet.CodeUnsupportedTrigger, "metricType Value would multiply the number; leave it unset").
		conflict(fleet.ConflictDuplicateTarget, "a and b scale one target; delete one", "a", "b").
		conflict(fleet.ConflictUnsupportedTrigger, "c is unsupported", "c").
		conflict(fleet.ConflictInconsistentMetadata, "a and a variant that is gone", "a", "gone")
	expectNotices(t, quiet, loud,
		"a Warning DuplicateTarget: a and b scale one target; delete one",
		"a Warning InconsistentMetadata: a and a variant",
		"a Normal ScaleUp: 3 -> 4: busy",
		"b Warning DuplicateTarget: a and b scale one target; delete one",
		"c Warning UnsupportedTrigger: metricType Value")
	expectNotices(t, loud, loud)
}

func TestDuplicateClaimHasNoEventIfItsOwnerIsHeld(t *testing.T) {
	free := planAt(0).target("a", 3, fleet.CodeUnchanged, "fine").target("b", 3, fleet.CodeDuplicateTarget, "belongs to a")
	held := planAt(1).held("a", 3, fleet.CodeTargetNotFound, "was not found").held("b", 3, fleet.CodeDuplicateTarget, "belongs to a")
	expectNotices(t, free, held, "a Warning TargetNotFound: was not found")
	expectNotices(t, held, free, "a Normal HoldEnded: decided again")
}

func TestMaxReplicasIsAWarningWithoutFigures(t *testing.T) {
	enough := planAt(0).target("a", 4, fleet.CodeScaleUp, "busy")
	short := planAt(1).target("a", 4, fleet.CodeMaxReplicas, "12 req/s, 7% unserved")
	shorter := planAt(2).target("a", 4, fleet.CodeMaxReplicas, "15 req/s, 9% unserved")
	expectNotices(t, enough, short, "a Warning MaxReplicas: The demand needs more")
	expectNotices(t, short, shorter)
	for _, n := range Notices(fleet.Plan{}, shorter.Plan) {
		if n.Warning && strings.ContainsAny(n.Text, "0123456789") {
			t.Errorf("%q holds a figure, which keeps events from being folded", n.Text)
		}
	}
}

func TestStuckReplicaIsAWarningWhateverDecidesTheNumber(t *testing.T) {
	fine := planAt(0).target("a", 4, fleet.CodeUnchanged, "fine")
	stuck := planAt(1).target("a", 4, fleet.CodeUnchanged, "fine")
	stuck.Decisions[0].Reason = stuck.Decisions[0].Reason.With(fleet.DetailStuck, "1 replica has a queue: a-1")
	expectNotices(t, fine, stuck, "a Warning ReplicaStuck: A replica has a queue")
	expectNotices(t, stuck, stuck)
	all := planAt(2).held("a", 4, fleet.CodeReplicaStuck, "every ready replica has a queue")
	expectNotices(t, stuck, all, "a Warning ReplicaStuck: every ready replica")
}

func TestPauseIsNoWarning(t *testing.T) {
	running := planAt(0).target("a", 3, fleet.CodeUnchanged, "fine")
	expectNotices(t, running, planAt(1).target("a", 2, fleet.CodePaused, "paused at 2"), "a Normal Paused: 3 -> 2: paused at 2")
	expectNotices(t, running, planAt(1).held("a", 3, fleet.CodePaused, "paused"))
}

func TestFirstPlanHasEventsForWarningsAndChanges(t *testing.T) {
	plan := planAt(9).target("a", 5, fleet.CodeScaleUp, "busy").held("b", 3, fleet.CodeTargetNotFound, "was not found").
		target("c", 4, fleet.CodeMaxReplicas, "7% are more").conflict(fleet.ConflictInconsistentMetadata, "a and b differ", "a", "b")
	expectNotices(t, nil, plan,
		"a Warning InconsistentMetadata: a and b differ", "a Normal ScaleUp: 1 -> 5: busy",
		"b Warning InconsistentMetadata: a and b differ", "b Warning TargetNotFound: was not found",
		"b Normal TargetNotFound: 1 -> 3: was not found",
		"c Warning MaxReplicas: ", "c Normal MaxReplicas: 1 -> 4: 7% are more")
	expectNotices(t, &planBuilder{}, &planBuilder{})
}

func TestNoticesAreTheSameInAnyOrderOfRows(t *testing.T) {
	before := planAt(0).target("a", 1, fleet.CodeUnchanged, "x").held("b", 1, fleet.CodeMetricsMissing, "x").target("c", 1, fleet.CodeUnchanged, "x")
	after := planAt(1).target("a", 2, fleet.CodeScaleUp, "x").target("b", 2, fleet.CodeScaleUp, "x").held("c", 1, fleet.CodeMetricsMissing, "x").
		conflict(fleet.ConflictInconsistentMetadata, "differ", "c", "a").conflict(fleet.ConflictDuplicateTarget, "claim", "b", "a")
	want := Notices(before.Plan, after.Plan)
	for _, p := range []*planBuilder{before, after} {
		slices.Reverse(p.Decisions)
		slices.Reverse(p.Conflicts)
	}
	if got := Notices(before.Plan, after.Plan); !reflect.DeepEqual(got, want) || len(want) != 8 {
		t.Errorf("in another order\n%q\nwant\n%q", lines(got), lines(want))
	}
}
