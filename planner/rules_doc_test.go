package planner

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/wva-project/wva/fleet"
)

const (
	planningPage = "../docs/planning.md"
	rulesBegin   = "<!-- Rules: written by \"go test ./planner -run PlanningPage -update\" from rules() in planner/rules.go. -->\n"
	rulesEnd     = "\n<!-- End of the rules. -->"
)

// documentedRule is a line of the table of rules.
type documentedRule struct {
	code        fleet.Code
	bound, when string
	files       []appliedIn
}

// appliedIn is a file of the package that applies a rule, with the word that does.
type appliedIn struct{ file, word string }

// documentedRules returns the rules in the order of precedence: those of rules(), and the others
// that need more than one variant.
func documentedRules() []documentedRule {
	all := []documentedRule{{
		fleet.CodeDuplicateTarget, "= the number of the target's owner", "an older ScaledObject scales the same workload",
		[]appliedIn{{"planner.go", "repeatOwners"}},
	}}
	others := map[fleet.Code]appliedIn{
		fleet.CodeSaturated:              {"handover.go", "fleet.CodeSaturated"},
		fleet.CodeStartsForCurrentDemand: {"mix.go", "startsForCurrentDemand"},
	}
	for _, r := range rules() {
		row := documentedRule{code: r.code, bound: r.bound, when: r.when}
		if r.apply != nil {
			row.files = append(row.files, appliedIn{"rules.go", "fleet.Code" + string(r.code)})
		}
		if in, found := others[r.code]; found {
			row.files = append(row.files, in)
		}
		all = append(all, row)
	}
	return append(all, documentedRule{
		fleet.CodeInsufficientAccelerators, "≤ the replicas that fit on the nodes",
		"an accelerator type has a limit, and the demand of all models needs more of it; KEDA keeps its minimum all the same",
		[]appliedIn{{"mix.go", "isShort"}, {"fair_parts.go", "fairParts"}},
	}, documentedRule{
		fleet.CodeMakeBeforeBreak, "≥ the replicas that serve until others are ready",
		"the replicas that take over are not ready, or have not shown their capacity",
		[]appliedIn{{"handover.go", "fleet.CodeMakeBeforeBreak"}},
	}, documentedRule{
		fleet.CodeReplicaStuck, "none: the replica is no capacity, and its queue no demand",
		"it has a queue and made no progress for the whole peak window, while another replica serves; if all are stuck, the model is held",
		[]appliedIn{{"pods.go", "setStuckAside"}, {"demand.go", "fleet.CodeReplicaStuck"}},
	})
}

// changeCodes are the codes of decisions that no rule makes: the demand does.
func changeCodes() []fleet.Code {
	return []fleet.Code{
		fleet.CodeUnchanged, fleet.CodeScaleUp, fleet.CodeScaleDown, fleet.CodeRebalance, fleet.CodeScaleToZero, fleet.CodeScaleFromZero,
	}
}

func rulesTable() string {
	var table strings.Builder
	table.WriteString("\n| | code | bound | when | file |\n|---|---|---|---|---|\n")
	for i, r := range documentedRules() {
		files := make([]string, len(r.files))
		for j, in := range r.files {
			files[j] = fmt.Sprintf("[%s](../planner/%s)", in.file, in.file)
		}
		fmt.Fprintf(&table, "| %d | `%s` | %s | %s | %s |\n", i+1, r.code, r.bound, r.when, strings.Join(files, ", "))
	}
	return table.String()
}

func TestPlanningPageHasTheRules(t *testing.T) {
	page, err := os.ReadFile(planningPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := bytes.Cut(page, []byte(rulesBegin))
	table, after, ends := bytes.Cut(rest, []byte(rulesEnd))
	if !begins || !ends {
		t.Fatalf("%s lacks the lines %q and %q", planningPage, rulesBegin, rulesEnd)
	}
	if string(table) == rulesTable() {
		return
	}
	if !*update {
		t.Fatalf("the rules of %s are not those of planner/rules.go; write them with -update", planningPage)
	}
	write(t, planningPage, slices.Concat(before, []byte(rulesBegin+rulesTable()+rulesEnd), after))
}

func TestEveryCodeOfABoundIsADocumentedRule(t *testing.T) {
	documented := map[fleet.Code]bool{}
	for _, r := range documentedRules() {
		if documented[r.code] || len(r.files) == 0 {
			t.Errorf("%s has two rules, or no file: %v", r.code, r.files)
		}
		documented[r.code] = true
		for _, in := range r.files {
			source, err := os.ReadFile(in.file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(source, []byte(in.word)) {
				t.Errorf("%s does not apply %s: it lacks %s", in.file, r.code, in.word)
			}
		}
	}
	for _, row := range fleet.Codes() {
		if change := slices.Contains(changeCodes(), row.Code); row.Use == fleet.UseDecision && documented[row.Code] == change {
			t.Errorf("%s is a rule: %v, and a change of demand: %v; want one of the two", row.Code, documented[row.Code], change)
		}
	}
}

// directions returns whether a documented bound is a lower and an upper one.
func directions(bound string) (lower, upper bool) {
	switch {
	case strings.HasPrefix(bound, "= "):
		return true, true
	case strings.HasPrefix(bound, "≥ "):
		return true, false
	}
	return false, strings.HasPrefix(bound, "≤ ")
}

// TestRulesSetTheDocumentedBounds applies all rules to all snapshots of testdata. Each must apply
// to some of them, and bound in the documented direction.
func TestRulesSetTheDocumentedBounds(t *testing.T) {
	applied := map[fleet.Code]int{}
	for name, s := range scenarioSnapshots(t) {
		x := newView(s, nil, Policy{}.withDefaults())
		for _, result := range x.sizeAll() {
			if result.sized == nil {
				continue
			}
			for _, c := range result.sized.candidates {
				for _, r := range rules() {
					if r.apply == nil {
						continue
					}
					b, applies := r.apply(x, result.sized, &c)
					if !applies {
						continue
					}
					applied[r.code]++
					if lower, upper := directions(r.bound); b.code != r.code || b.least > 0 && !lower || b.most < unlimited && !upper {
						t.Errorf("%s: the bound of %s is %+v, documented is %q", name, r.code, b, r.bound)
					}
				}
			}
		}
	}
	for _, r := range rules() {
		if r.apply != nil && applied[r.code] == 0 {
			t.Errorf("%s applies to no snapshot of testdata", r.code)
		}
	}
}

// TestRulesAreInTheOrderOfPrecedence checks the documented order: what others set or enforce, lower
// bounds, upper bounds; and that of two bounds that contradict each other the earlier one wins.
func TestRulesAreInTheOrderOfPrecedence(t *testing.T) {
	enforced := []fleet.Code{
		fleet.CodeMaxReplicas, fleet.CodeMinReplicas, fleet.CodeActivation, fleet.CodeScaleInPaused, fleet.CodeScaleOutPaused,
	}
	group := func(r rule) int {
		lower, upper := directions(r.bound)
		switch {
		case lower && upper:
			return 0
		case slices.Contains(enforced, r.code):
			return 1
		case lower:
			return 2
		case upper:
			return 3
		}
		t.Fatalf("the bound of %s begins with none of =, ≥ and ≤: %s", r.code, r.bound)
		return 0
	}
	c := candidate{variant: &variant{Variant: &fleet.Variant{Range: fleet.Range{Max: 9}}}}
	for i, first := range rules() {
		for _, second := range rules()[i+1:] {
			if group(first) > group(second) {
				t.Errorf("%s comes before %s", first.code, second.code)
			}
			low, high := atMost(first.code, 2, ""), atLeast(second.code, 5, "")
			if r := within(c.variant, []bound{low, high}); r.Min != 2 || r.Max != 2 {
				t.Errorf("at most 2 by %s, then at least 5 by %s: %+v, want 2", first.code, second.code, r)
			}
			low, high = atMost(second.code, 2, ""), atLeast(first.code, 5, "")
			if r := within(c.variant, []bound{high, low}); r.Min != 5 || r.Max != 5 {
				t.Errorf("at least 5 by %s, then at most 2 by %s: %+v, want 5", first.code, second.code, r)
			}
		}
	}
}
