package planner

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// told builds the plans of a story about notices.
type told struct{ fleet.Plan }

func toldAt(minute int) *told {
	return &told{fleet.Plan{Time: epoch.Add(time.Duration(minute) * time.Minute)}}
}

func (p *told) target(name string, replicas int, code fleet.Code, text string) *told {
	p.Decisions = append(p.Decisions, fleet.Decision{
		Variant: fleet.VariantID{Namespace: "shop", Name: name}, Replicas: replicas, Known: true, Reason: fleet.Reason{Code: code, Text: text},
		Facts: fleet.Facts{Current: 1, CurrentKnown: true},
	})
	return p
}

func (p *told) held(name string, replicas int, code fleet.Code, text string) *told {
	p.Decisions = append(p.Decisions, fleet.Decision{
		Variant: fleet.VariantID{Namespace: "shop", Name: name}, Replicas: replicas, Known: true, Held: true, Unsupported: code == fleet.CodeUnsupportedTrigger,
		Reason: fleet.Reason{Code: code, Text: text}, Facts: fleet.Facts{Current: 1, CurrentKnown: true},
	})
	return p
}

func (p *told) conflict(kind fleet.ConflictType, text string, names ...string) *told {
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

func expectNotices(t *testing.T, before, after *told, want ...string) {
	t.Helper()
	var plan fleet.Plan
	if before != nil {
		plan = before.Plan
	}
	got := lines(Notices(plan, after.Plan))
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("told\n%s\nwant lines that begin with\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAChangedNumberIsToldOnceWithItsReason(t *testing.T) {
	three := toldAt(0).target("a", 3, fleet.CodeUnchanged, "fine").target("b", 1, fleet.CodeUnchanged, "fine")
	five := toldAt(1).target("a", 5, fleet.CodeScaleUp, "9 requests/s arrive").target("b", 1, fleet.CodeUnchanged, "fine")
	later := toldAt(2).target("a", 5, fleet.CodeUnchanged, "8 requests/s arrive").target("b", 1, fleet.CodeUnchanged, "fine")
	expectNotices(t, three, five, "a Normal ScaleUp: 3 -> 5: 9 requests/s arrive")
	expectNotices(t, five, later)
}

func TestANewVariantIsComparedWithWhatRuns(t *testing.T) {
	old := toldAt(0).target("a", 3, fleet.CodeUnchanged, "fine")
	both := toldAt(1).target("a", 3, fleet.CodeUnchanged, "fine").target("new", 4, fleet.CodeScaleUp, "busy").target("right", 1, fleet.CodeUnchanged, "fine")
	expectNotices(t, old, both, "new Normal ScaleUp: 1 -> 4: busy")
	expectNotices(t, both, old) // an object that is gone hears nothing
}

func TestAHoldIsToldWhenItBeginsAndWhenItEnds(t *testing.T) {
	decided := toldAt(0).target("a", 3, fleet.CodeUnchanged, "fine")
	missing := toldAt(1).held("a", 3, fleet.CodeMetricsMissing, "2 ready replicas have no metrics")
	more := toldAt(2).held("a", 3, fleet.CodeMetricsMissing, "3 ready replicas have no metrics (connection refused)")
	stale := toldAt(3).held("a", 3, fleet.CodeMetricsStale, "the last samples of 1 ready replica are too old")
	expectNotices(t, decided, missing, "a Warning MetricsMissing: replicas are kept: Metrics")
	expectNotices(t, missing, more) // the same warning stands, whatever its figures
	expectNotices(t, more, stale, "a Warning MetricsStale: replicas are kept")
	expectNotices(t, stale, decided, "a Normal HoldEnded: decided again; MetricsStale is over")
}

func TestAFaultThatBecomesAnotherOneIsToldAgain(t *testing.T) {
	cost := toldAt(0).held("a", 3, fleet.CodeInvalidDefinition, "variantCost -1 is not a price; set it to 0 or more")
	rangeFault := toldAt(1).held("a", 3, fleet.CodeInvalidDefinition, "maxReplicaCount 1 is below minReplicaCount 2; raise it")
	expectNotices(t, cost, cost)
	expectNotices(t, cost, rangeFault, "a Warning InvalidDefinition: maxReplicaCount")
}

func TestConflictsAndRefusalsAreToldOnEachVariantOnce(t *testing.T) {
	quiet := toldAt(0).target("a", 3, fleet.CodeUnchanged, "fine").target("b", 3, fleet.CodeUnchanged, "fine").held("c", 1, fleet.CodeTargetNotFound, "x")
	loud := toldAt(1).target("a", 4, fleet.CodeScaleUp, "busy").target("b", 4, fleet.CodeDuplicateTarget, "belongs to a").
		held("c", 1, fleet.CodeUnsupportedTrigger, "metricType Value would multiply the number; leave it unset").
		conflict(fleet.ConflictDuplicateTarget, "a and b scale one target; delete one", "a", "b").
		conflict(fleet.ConflictUnsupportedTrigger, "c is misapplied", "c").
		conflict(fleet.ConflictInconsistentMetadata, "a and a variant that is gone", "a", "gone")
	expectNotices(t, quiet, loud,
		"a Warning DuplicateTarget: a and b scale one target; delete one",
		"a Warning InconsistentMetadata: a and a variant",
		"a Normal ScaleUp: 3 -> 4: busy",
		"b Warning DuplicateTarget: a and b scale one target; delete one",
		"c Warning UnsupportedTrigger: metricType Value")
	expectNotices(t, loud, loud)
}

func TestALoserWhoseOwnerIsHeldIsNotToldSo(t *testing.T) {
	free := toldAt(0).target("a", 3, fleet.CodeUnchanged, "fine").target("b", 3, fleet.CodeDuplicateTarget, "belongs to a")
	held := toldAt(1).held("a", 3, fleet.CodeTargetNotFound, "was not found").held("b", 3, fleet.CodeDuplicateTarget, "belongs to a")
	expectNotices(t, free, held, "a Warning TargetNotFound: was not found")
	expectNotices(t, held, free, "a Normal HoldEnded: decided again")
}

func TestSaturationAtTheMaximumIsAWarningWithoutFigures(t *testing.T) {
	enough := toldAt(0).target("a", 4, fleet.CodeScaleUp, "busy")
	short := toldAt(1).target("a", 4, fleet.CodeMaxReplicas, "12 req/s, 7% unserved")
	shorter := toldAt(2).target("a", 4, fleet.CodeMaxReplicas, "15 req/s, 9% unserved")
	expectNotices(t, enough, short, "a Warning MaxReplicas: The demand needs more")
	expectNotices(t, short, shorter)
	for _, n := range Notices(fleet.Plan{}, shorter.Plan) {
		if n.Warning && strings.ContainsAny(n.Text, "0123456789") {
			t.Errorf("%q holds a figure, which keeps events from being folded", n.Text)
		}
	}
}

func TestAPauseIsNoWarning(t *testing.T) {
	running := toldAt(0).target("a", 3, fleet.CodeUnchanged, "fine")
	expectNotices(t, running, toldAt(1).target("a", 2, fleet.CodePaused, "paused at 2"), "a Normal Paused: 3 -> 2: paused at 2")
	expectNotices(t, running, toldAt(1).held("a", 3, fleet.CodePaused, "paused"))
}

func TestTheFirstPlanTellsWarningsAndChanges(t *testing.T) {
	plan := toldAt(9).target("a", 5, fleet.CodeScaleUp, "busy").held("b", 3, fleet.CodeTargetNotFound, "was not found").
		target("c", 4, fleet.CodeMaxReplicas, "7% are more").conflict(fleet.ConflictInconsistentMetadata, "a and b differ", "a", "b")
	expectNotices(t, nil, plan,
		"a Warning InconsistentMetadata: a and b differ", "a Normal ScaleUp: 1 -> 5: busy",
		"b Warning InconsistentMetadata: a and b differ", "b Warning TargetNotFound: was not found",
		"b Normal TargetNotFound: 1 -> 3: was not found",
		"c Warning MaxReplicas: ", "c Normal MaxReplicas: 1 -> 4: 7% are more")
	expectNotices(t, &told{}, &told{})
}

func TestNoticesDoNotDependOnTheOrderOfRows(t *testing.T) {
	before := toldAt(0).target("a", 1, fleet.CodeUnchanged, "x").held("b", 1, fleet.CodeMetricsMissing, "x").target("c", 1, fleet.CodeUnchanged, "x")
	after := toldAt(1).target("a", 2, fleet.CodeScaleUp, "x").target("b", 2, fleet.CodeScaleUp, "x").held("c", 1, fleet.CodeMetricsMissing, "x").
		conflict(fleet.ConflictInconsistentMetadata, "differ", "c", "a").conflict(fleet.ConflictDuplicateTarget, "claim", "b", "a")
	want := Notices(before.Plan, after.Plan)
	for _, p := range []*told{before, after} {
		slices.Reverse(p.Decisions)
		slices.Reverse(p.Conflicts)
	}
	if got := Notices(before.Plan, after.Plan); !reflect.DeepEqual(got, want) || len(want) != 8 {
		t.Errorf("in another order\n%q\nwant\n%q", lines(got), lines(want))
	}
}
