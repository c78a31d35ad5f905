package planner

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/wva-project/wva/fleet"
)

// reasonSamples returns scenarios that together produce every text of a reason. Each names the
// codes that it must produce.
func reasonSamples() map[string]reasonSample {
	quiet := group{ready: 6, running: 5, kv: 0.05, rate: 0.5}
	idle := func(l *fleet.Load) {
		l.PeakArrivals, l.PeakInFlight, l.PeakCovered = fleet.Observed(0), fleet.Observed(0), true
		l.IdleCovered, l.LastActive = 10*time.Minute, epoch.Add(-11*time.Minute)
	}
	with := func(g group, change func(*fleet.Usage)) group { g.usage = change; return g }
	variant := func(g group, change func(*fleet.Variant)) group { g.variant = change; return g }
	slow := cheap(quiet)
	slow.objective = 40 * time.Millisecond
	capped := cheap(group{ready: 2, running: 100, waiting: 100, kv: 0.95, rate: 6})
	capped.max = 2
	return map[string]reasonSample{
		"unchanged": sample(newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5})), fleet.CodeUnchanged),
		"scale up":  sample(newScenario(cheap(group{ready: 2, running: 100, waiting: 200, kv: 0.95, rate: 6})), fleet.CodeScaleUp),
		"scale down": sample(newScenario(cheap(group{ready: 6, running: 10, kv: 0.1, rate: 1})).
			load(func(l *fleet.Load) { l.PeakArrivals = fleet.Observed(17) }), fleet.CodeScaleDown),
		"rebalance": sample(newScenario(cheap(group{}), fast(group{ready: 1})).load(func(l *fleet.Load) {
			l.PeakArrivals, l.PeakInFlight, l.PeakCovered = fleet.Observed(0), fleet.Observed(0), true
		}), fleet.CodeMakeBeforeBreak),
		"scale to zero":   sample(newScenario(cheap(group{ready: 2})).load(idle).scaleToZero(), fleet.CodeScaleToZero),
		"scale from zero": sample(newScenario(cheap(group{}), fast(group{})).scaleToZero().gateway(7, 0.2), fleet.CodeScaleFromZero, fleet.CodeUnchanged),
		"last replica":    sample(newScenario(cheap(group{ready: 1})).load(idle), fleet.CodeLastReplica),
		"last replica, recently used": sample(newScenario(cheap(group{ready: 1})).scaleToZero().load(func(l *fleet.Load) {
			idle(l)
			l.LastActive = epoch.Add(-3 * time.Minute)
		}), fleet.CodeLastReplica),
		"last replica, not covered": sample(newScenario(cheap(group{ready: 1})).scaleToZero().load(func(l *fleet.Load) {
			idle(l)
			l.IdleCovered, l.LastActive = time.Minute, time.Time{}
		}), fleet.CodeLastReplica),
		"make before break": sample(newScenario(
			cheap(group{ready: 1, loading: 2, running: 20, kv: 0.2, rate: 2}), fast(group{ready: 1, running: 40, kv: 0.3, rate: 12})), fleet.CodeMakeBeforeBreak),
		"saturated": sample(func() *scenario {
			s := newScenario(cheap(quiet))
			s.Usages[2].KV = fleet.Observed(0.85)
			return s
		}(), fleet.CodeSaturated),
		"ITL missed": sample(newScenario(slow).load(func(l *fleet.Load) { l.ITL = fleet.Observed(0.2) }), fleet.CodeSLOMissed),
		"TTFT missed": sample(newScenario(variant(cheap(quiet), func(v *fleet.Variant) { v.Objective.TTFT = time.Second })).
			load(func(l *fleet.Load) { l.TTFT = fleet.Observed(2.5) }), fleet.CodeSLOMissed),
		"window not covered": sample(newScenario(cheap(quiet)).load(func(l *fleet.Load) { l.PeakCovered = false }), fleet.CodeWindowNotCovered),
		"partial metrics": sample(func() *scenario {
			s := newScenario(cheap(quiet))
			s.Usages = s.Usages[1:]
			return s
		}(), fleet.CodeMetricsMissing),
		"failed query": sample(newScenario(cheap(quiet)).missing("prometheus query gateway", "timeout"), fleet.CodeMetricsMissing),
		"rate not known": sample(newScenario(with(cheap(quiet), func(u *fleet.Usage) {
			u.FirstTokens, u.Scrapes = fleet.Reading{}, 0
		})), fleet.CodeMetricsMissing),
		"max replicas": sample(newScenario(capped), fleet.CodeMaxReplicas),
		"max replicas and no accelerators": sample(func() *scenario {
			s := newScenario(capped, fast(group{})).gateway(0, 80).node("H100", "h1", 8, 8)
			return s
		}(), fleet.CodeMaxReplicas),
		"insufficient accelerators": sample(fullNodes(), fleet.CodeInsufficientAccelerators),
		"elastic limit": sample(func() *scenario {
			s := fullNodes()
			s.Pools[0].Elastic, s.Pools[0].Limit = true, 2
			return s
		}(), fleet.CodeInsufficientAccelerators),
		"preempted": sample(newScenario(cheap(saturated(group{ready: 4}))).called("a-").gateway(0, 24).
			beside("b", newScenario(cheap(group{})).called("b-").gateway(30, 24)).
			node("L40S", "l1", 4, 0).on("a-cheap", "l1", "l1", "l1", "l1"), fleet.CodeInsufficientAccelerators),
		"minimum above the nodes": sample(newScenario(cheap(saturated(group{ready: 1, min: 3}))).gateway(0, 24).node("L40S", "l1", 1, 0).on("cheap", "l1")),
		"group that does not fit": sample(newScenario(cheap(saturated(group{ready: 1, workload: func(w *fleet.Workload) { w.GroupSize = 2 }, variant: gpus(16)}))).
			gateway(3700, 1234).node("L40S", "l1", 8, 0).node("L40S", "l2", 8, 0).on("cheap", "l1"), fleet.CodeInsufficientAccelerators),
		"no nodes of the type": sample(newScenario(fast(group{})).gateway(3700, 1234).withoutNodes("H100"), fleet.CodeInsufficientAccelerators),
		"scaled to zero":       sample(newScenario(cheap(group{})).scaleToZero(), fleet.CodeNotRequested),
		"requests in flight": sample(newScenario(with(cheap(group{ready: 3, running: 50, kv: 0.5}), func(u *fleet.Usage) {
			u.FirstTokens, u.Scrapes = fleet.Reading{}, 0
		}))),
		"infeasible": sample(newScenario(fast(group{ready: 2, running: 20, kv: 0.1, rate: 5, max: 50})).profiled(time.Second, 6*time.Millisecond)),
		"many":       sample(newScenario(cheap(group{ready: 900, running: 100, waiting: 200, kv: 0.95, rate: 1234, max: 5000})), fleet.CodeScaleUp),
		"several validation errors": sample(newScenario(cheap(group{ready: 2, mute: true, variant: func(v *fleet.Variant) {
			v.Invalid = append(problem("variantCost \"cheap\" is not a decimal number", "allowed: a number; write digits"), problem("ttft \"soon\" is not a duration", "write 500ms")...)
		}})), fleet.CodeInvalidDefinition),
		"spill":        sample(spillOver(), fleet.CodeScaleUp),
		"probe":        sample(newScenario(cheap(group{loading: 1}), fast(group{})).scaleToZero().gateway(9, 0.2)),
		"not starting": sample(newScenario(cheap(group{ready: 1, stuck: 2, running: 60, kv: 0.69, rate: 6}), fast(group{})).gateway(0, 14)),
		"duplicate target": sample(newScenario(group{name: "newer", cost: 9, max: 3, claims: "cheap", created: epoch.Add(-time.Minute)},
			cheap(group{ready: 2, running: 60, kv: 0.6, rate: 5, created: epoch.Add(-time.Hour)})), fleet.CodeDuplicateTarget),
		"paused":          sample(newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5, variant: paused(fleet.Pause{All: true, Fixed: true, Replicas: 2})})), fleet.CodePaused),
		"paused as it is": sample(newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5, variant: paused(fleet.Pause{All: true})})), fleet.CodePaused),
		"narrowed":        sample(newScenario(cheap(group{ready: 6, running: 10, kv: 0.1, rate: 1, variant: paused(fleet.Pause{In: true, Out: true, Awake: true})}))),
		"no metrics":      sample(newScenario(cheap(group{ready: 3, mute: true})), fleet.CodeMetricsMissing),
		"at zero without a gateway": sample(newScenario(cheap(group{})).
			missing("prometheus query gateway", "timeout"), fleet.CodeMetricsMissing),
		"stale":            sample(newScenario(with(cheap(quiet), func(u *fleet.Usage) { u.Waiting.State = fleet.Stale })), fleet.CodeMetricsStale),
		"not a number":     sample(newScenario(with(cheap(quiet), func(u *fleet.Usage) { u.KV = fleet.Reading{State: fleet.NaN} })), fleet.CodeMetricsInvalid),
		"too few scrapes":  sample(newScenario(with(cheap(quiet), func(u *fleet.Usage) { u.FirstTokens, u.Scrapes = fleet.Reading{}, 2 })), fleet.CodeWindowTooShort),
		"target not found": sample(newScenario(cheap(group{absent: true})), fleet.CodeTargetNotFound),
		"target unreadable": sample(newScenario(cheap(group{ready: 2, variant: func(v *fleet.Variant) {
			v.Hidden = "pods cannot be listed: forbidden; grant list and watch on pods"
		}})), fleet.CodeTargetUnreadable),
		"invalid definition": sample(newScenario(cheap(group{ready: 2, mute: true, variant: invalid})), fleet.CodeInvalidDefinition),
		"own numbers":        sample(newScenario(cheap(group{ready: 2, variant: func(v *fleet.Variant) { v.Range = fleet.Range{Min: 5, Max: 2} }})), fleet.CodeInvalidDefinition),
		"mixed roles":        sample(newScenario(cheap(group{ready: 1, variant: func(v *fleet.Variant) { v.Role = fleet.RolePrefill }}), fast(group{ready: 1})), fleet.CodeInvalidDefinition),
		"name collision": sample(newScenario(cheap(group{ready: 1, created: epoch.Add(-time.Hour)}),
			fast(group{ready: 1, variant: func(v *fleet.Variant) { v.Model.Name, v.ServedName = "another", llama }})), fleet.CodeInvalidDefinition),
		"model already scaled": sample(newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6}),
			fast(group{ready: 1, running: 40, kv: 0.3, rate: 12, variant: dryRun}), group{name: "again", cost: 9, max: 3, claims: "cheap", variant: dryRun}),
			fleet.CodeModelAlreadyScaled, fleet.CodeDuplicateTarget),
		"unsupported trigger": sample(newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6, variant: unsupported})), fleet.CodeUnsupportedTrigger),
		"conflicting HPA":     sample(newScenario(cheap(group{ready: 2, running: 60, kv: 0.6, rate: 6, workload: otherHPA})), fleet.CodeConflictingHPA),
	}
}

type reasonSample struct {
	*scenario
	codes []fleet.Code
}

func sample(s *scenario, codes ...fleet.Code) reasonSample { return reasonSample{s, codes} }

func (s reasonSample) decisions() []fleet.Decision {
	plan := Plan(s.Snapshot, Policy{})
	return slices.Concat(plan.Decisions, plan.Recommendations)
}

// Every reason is one line of at most 120 characters without the names of objects. For a decided
// variant it begins with the demand, or with the fact that it is not known.
func TestReasonsAreOneShortLine(t *testing.T) {
	begins := regexp.MustCompile(`^(\d|request rate not known|paused at |\S+ shop/\S+ is scaled by )`)
	produced := map[fleet.Code]bool{}
	samples := reasonSamples()
	for name, s := range scenarioSnapshots(t) {
		samples[name] = sample(&scenario{s})
	}
	for name, s := range samples {
		decisions := s.decisions()
		for _, code := range s.codes {
			if !slices.ContainsFunc(decisions, func(d fleet.Decision) bool { return d.Reason.Code == code }) {
				t.Errorf("%s: no decision has the code %s", name, code)
			}
		}
		for _, d := range decisions {
			produced[d.Reason.Code] = true
			text := withoutNames(d.Reason.Text, s.Snapshot)
			if utf8.RuneCountInString(text) > fleet.MaxReasonText || strings.ContainsAny(text, ";\n") && strings.Count(text, ";") > 1 {
				t.Errorf("%s: %s has %d characters: %q", name, d.Reason.Code, utf8.RuneCountInString(text), d.Reason.Text)
			}
			if !d.Held && !begins.MatchString(d.Reason.Text) {
				t.Errorf("%s: %s does not begin with a number: %q", name, d.Reason.Code, d.Reason.Text)
			}
			seen := map[fleet.DetailName]bool{}
			for _, detail := range d.Reason.Details {
				if detail.Text == "" || seen[detail.Name] || !slices.Contains(fleet.DetailNames(), detail.Name) {
					t.Errorf("%s: detail %q is %q; names are known and come once", name, detail.Name, detail.Text)
				}
				seen[detail.Name] = true
			}
		}
	}
	// TestPanicOfOneModelHoldsItAlone produces it: no known input does.
	produced[fleet.CodePlanningFailed] = true
	for _, row := range fleet.Codes() {
		if (row.Use == fleet.UseDecision || row.Use == fleet.UseHeld) && !produced[row.Code] {
			t.Errorf("no sample has the code %s", row.Code)
		}
	}
}

// withoutNames removes the names of a snapshot's objects and models from a text.
func withoutNames(text string, s fleet.Snapshot) string {
	var names []string
	for _, v := range s.Variants {
		names = append(names, v.Target.String(), v.ID.String(), v.Model.String(), v.Model.Name, v.ServedName)
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		if name != "" {
			text = strings.ReplaceAll(text, name, "")
		}
	}
	return text
}

// A reason names no object of another namespace: it is read by the owners of this one.
func TestReasonsNameNoObjectOfAnotherNamespace(t *testing.T) {
	s := newScenario(cheap(saturated(group{ready: 1, min: 1}))).called("a-").gateway(0, 24).
		beside("b", newScenario(cheap(group{})).called("b-").gateway(7, 2)).node("L40S", "l1", 1, 0).on("a-cheap", "l1")
	for i := range s.Variants {
		if v := &s.Variants[i]; v.ID.Name == "a-cheap" {
			v.ID.Namespace, v.Model.Namespace, v.Target.Namespace = "secret", "secret", "secret"
		}
	}
	for i := range s.Workloads {
		if w := &s.Workloads[i]; w.ID.Name == "a-cheap" {
			w.ID.Namespace = "secret"
		}
	}
	for i := range s.Usages {
		s.Usages[i].Namespace = "secret"
	}
	found := false
	for _, d := range Plan(s.Snapshot, Policy{}).Decisions {
		if d.Variant.Name != "b-cheap" {
			continue
		}
		found = d.Reason.Code == fleet.CodeInsufficientAccelerators
		if strings.Contains(d.Reason.String(), "secret") || strings.Contains(d.Reason.String(), "a-cheap") {
			t.Errorf("%q names another tenant's object", d.Reason)
		}
	}
	if !found {
		t.Error("no accelerators are missing; the scenario shows nothing")
	}
}

// The table of codes says which condition and which event a reason causes; both are as it says.
func TestCodesCauseTheirConditionAndEvent(t *testing.T) {
	for name, s := range reasonSamples() {
		plan := Plan(s.Snapshot, Policy{})
		notices := Notices(fleet.Plan{}, plan)
		for _, d := range plan.Decisions {
			row, found := lookupCode(d.Reason.Code)
			if !found {
				t.Errorf("%s: code %s has no row", name, d.Reason.Code)
				continue
			}
			caused := false
			for _, c := range d.Conditions() {
				if c.Type == row.Condition {
					caused = c.Status != fleet.ConditionTrue && c.Reason == string(row.Code)
				}
				if row.Condition == "" && c.Status == fleet.ConditionFalse && c.Reason == string(row.Code) {
					t.Errorf("%s: %s makes %s False, which the table does not say", name, row.Code, c.Type)
				}
			}
			if row.Condition != "" && !caused {
				t.Errorf("%s: %s does not cause %s: %+v", name, row.Code, row.Condition, d.Conditions())
			}
			warned := slices.ContainsFunc(notices, func(n fleet.Notice) bool {
				return n.Variant == d.Variant && n.Warning && n.Code == row.Code
			})
			if want := row.Event == fleet.EventWarning && (d.Held || row.Use == fleet.UseDecision); warned != want {
				t.Errorf("%s: a warning for %s: %v, want %v", name, row.Code, warned, want)
			}
		}
	}
}

// lookupCode returns the row of a code.
func lookupCode(code fleet.Code) (fleet.CodeInfo, bool) {
	rows := fleet.Codes()
	at := slices.IndexFunc(rows, func(row fleet.CodeInfo) bool { return row.Code == code })
	if at < 0 {
		return fleet.CodeInfo{}, false
	}
	return rows[at], true
}

// Each finding, and each cause for which no HPA applies the number, is a condition and an event of
// its own; so is an objective that cannot be met.
func TestFindingsAndTheHPAAreConditionsAndEvents(t *testing.T) {
	tested := 0
	for _, row := range fleet.Codes() {
		s := newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5}))
		switch row.Use {
		case fleet.UseFinding:
			s.Variants[0].Findings = []fleet.Finding{{Code: row.Code, Text: "a fact", Remedy: "a remedy"}}
		case fleet.UseFollowed:
			s.Variants[0].Autoscaler = fleet.Autoscaler{Observed: true, Code: row.Code, Text: "a fact"}
		default:
			continue
		}
		tested++
		plan := Plan(s.Snapshot, Policy{})
		conditions := plan.Decisions[0].Conditions()
		if !slices.ContainsFunc(conditions, func(c fleet.Condition) bool {
			return c.Type == row.Condition && c.Status == fleet.ConditionFalse && c.Reason == string(row.Code)
		}) {
			t.Errorf("%s is no condition %s: %+v", row.Code, row.Condition, conditions)
		}
		isTold := func(n fleet.Notice) bool {
			return n.Code == row.Code && n.Warning == (row.Event == fleet.EventWarning) && strings.Contains(n.Text, "a fact")
		}
		if notices := Notices(fleet.Plan{}, plan); !slices.ContainsFunc(notices, isTold) {
			t.Errorf("%s is no event: %+v", row.Code, notices)
		}
		if again := Notices(plan, plan); slices.ContainsFunc(again, isTold) {
			t.Errorf("%s is told again while it lasts: %+v", row.Code, again)
		}
	}
	if tested < 15 {
		t.Errorf("%d codes tested, want all findings and HPA states", tested)
	}
}

// Names that the rest of the snapshot does not know are findings, with the nearest known name.
func TestUnknownNamesAreFindings(t *testing.T) {
	s := newScenario(cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5, variant: func(v *fleet.Variant) {
		v.Accelerator, v.ServiceClass = "L4OS", "premum"
	}}))
	s.Classes = []fleet.ServiceClass{{Name: "premium", Priority: 10, Namespaces: []string{"shop"}}}
	found := s.decide(t)["cheap"].Findings
	if len(found) != 2 || found[0].Code != fleet.CodeUnknownAccelerator || !strings.Contains(found[0].Remedy, "did you mean L40S?") ||
		found[1].Code != fleet.CodeUnknownServiceClass || !strings.Contains(found[1].Remedy, "did you mean premium?") {
		t.Errorf("%+v, want the unknown accelerator and class with the nearest names", found)
	}
	s.Variants[0].Accelerator, s.Variants[0].ServiceClass = "L40S", "premium"
	if found := s.decide(t)["cheap"].Findings; len(found) != 0 {
		t.Errorf("%+v, want no finding about known names", found)
	}
	s.Variants[0].Accelerator = "X9"
	if found := s.node("X9", "n", 8, 0).decide(t)["cheap"].Findings; len(found) != 0 {
		t.Errorf("%+v, want no finding about an accelerator on a node", found)
	}
}

const reasonsPage = "../docs/reference/reasons.md"

func TestReasonsPageIsUpToDate(t *testing.T) {
	page := writeReasonsPage()
	if *update {
		write(t, reasonsPage, []byte(page))
	}
	got, err := os.ReadFile(reasonsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page {
		t.Errorf("%s is out of date; write it with go test ./planner -run ReasonsPage -update", reasonsPage)
	}
	for _, code := range declaredCodes(t) {
		if _, found := lookupCode(code); !found {
			t.Errorf("code %s has no row in fleet.Codes", code)
		}
		if !strings.Contains(string(got), "| `"+string(code)+"` |") {
			t.Errorf("code %s is not in %s", code, reasonsPage)
		}
	}
}

// declaredCodes returns the codes of the constants in fleet/codes.go.
func declaredCodes(t *testing.T) []fleet.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../fleet/codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []fleet.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Code") || len(spec.Values) != 1 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, fleet.Code(text))
		}
		return true
	})
	if len(codes) < 40 {
		t.Fatalf("found %d codes in fleet/codes.go; the search is broken", len(codes))
	}
	return codes
}

// writeReasonsPage returns the page. The example of a code is the longest line of the samples.
func writeReasonsPage() string {
	examples := map[fleet.Code]string{}
	for _, s := range reasonSamples() {
		for _, d := range s.decisions() {
			text := d.Reason.Text
			if best, found := examples[d.Reason.Code]; !found || len(text) > len(best) || len(text) == len(best) && text < best {
				examples[d.Reason.Code] = text
			}
		}
	}
	var page strings.Builder
	page.WriteString(`# Reasons, findings and events

<!-- Written by "go test ./planner -run ReasonsPage -update" from the table of codes in fleet/codes.go. -->

Every number of replicas has a reason: a stable code and one line for people. The line is in the
API (` + "`reason`, `message`, `details`" + `), in the log line ` + "`target changed`" + `, and in the events on the
ScaledObject. Wording may change from release to release; codes do not.

The event of a decision is written when the number changes, that of a warning when the situation
begins. The condition in the table is False because of the code; OptimizationReady is False for every held
variant. [Operations](../operations.md) says
where to find events, conditions and log lines.
`)
	for _, section := range []struct {
		use         fleet.CodeUse
		title, text string
	}{
		{fleet.UseDecision, "Decisions", "The number of replicas was decided."},
		{fleet.UseHeld, "Held variants", "The variant could not be decided, and its number of replicas is kept."},
		{fleet.UseNotice, "Events beside decisions", "Told on the ScaledObject beside the decision."},
		{fleet.UseFollowed, "Numbers that no HPA applies", "The number was decided, and no HPA of KEDA applies it."},
		{fleet.UseFinding, "Findings in definitions", "The definition reads well and does not scale as it should. `wvactl lint` prints findings of manifests."},
	} {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n", section.title, section.text)
		hasExamples := section.use == fleet.UseDecision || section.use == fleet.UseHeld
		if hasExamples {
			page.WriteString("| code | meaning | what to do | condition | event | example |\n|---|---|---|---|---|---|\n")
		} else {
			page.WriteString("| code | meaning | what to do | condition | event |\n|---|---|---|---|---|\n")
		}
		for _, row := range fleet.Codes() {
			if row.Use != section.use {
				continue
			}
			fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |", row.Code, row.Meaning, row.Action, quotedOr(string(row.Condition)), quotedOr(string(row.Event)))
			if hasExamples {
				fmt.Fprintf(&page, " %s |", quotedOr(examples[row.Code]))
			}
			page.WriteString("\n")
		}
	}
	page.WriteString("\n## Details\n\nDetails follow the line, in this order, each at most once:\n\n")
	for _, name := range fleet.DetailNames() {
		fmt.Fprintf(&page, "- `%s`\n", name)
	}
	page.WriteString("\n## Conditions\n\nEvery variant has these conditions, with status True, False or Unknown:\n\n")
	for _, condition := range (fleet.Decision{}).Conditions() {
		fmt.Fprintf(&page, "- `%s`\n", condition.Type)
	}
	return page.String()
}

func quotedOr(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
