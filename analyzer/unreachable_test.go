package analyzer

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// An empty replica misses short limits on TTFT for its longest prompts. If no variant can meet the
// objective, a limit that is 2 % longer does not change the number of replicas by several times.
// The formula has the longest prompts in parts: the misses of an empty replica change in steps.
func TestCapacityChangesLittleIfTheObjectiveCanNearlyBeMet(t *testing.T) {
	last, reachable, unreachable := 0.0, 0, 0
	for limit := 40 * time.Millisecond; limit < 400*time.Millisecond; limit = limit * 51 / 50 {
		rate, c := capacityOf(chat(40, Variant{Profile: h100(), Objective: slo(limit, 40*time.Millisecond)}), Options{})
		if last > 0 && (rate < last/2.5 || rate > 2.5*last) {
			t.Errorf("TTFT %v: %.3g/s, %.3g/s at 2 %% less: %+v", limit, rate, last, c)
		}
		last = rate
		if !c.Infeasible {
			reachable++
			continue
		}
		unreachable++
		if !strings.Contains(c.Note, "sized for ") || !strings.HasPrefix(c.Remedy, fmt.Sprintf("TTFT %d ms cannot be met at", limit.Milliseconds())) && limit%time.Millisecond == 0 {
			t.Errorf("TTFT %v: %q, %q, want the share that it is sized for and the remedy", limit, c.Note, c.Remedy)
		}
	}
	if reachable < 10 || unreachable < 10 {
		t.Errorf("%d limits that can be met and %d that cannot, want some of both", reachable, unreachable)
	}
}

// If no variant can meet the objective, those that miss it for most requests even when empty are
// not sized by their other limits, beside one that serves most requests within it.
func TestTheWorseVariantIsNoneIfNoneCanMeetTheObjective(t *testing.T) {
	o := slo(70*time.Millisecond, 60*time.Millisecond)
	m := chat(40, Variant{Profile: h100(), Objective: o}, Variant{Profile: l40s(), Objective: o})
	m.Variants[1].Replicas = replicas(2, showing(m, l40s().Cost, 3))
	all := Analyze(m, Options{})
	fast, slow := all[0].Share.Or(0)*40, all[1].Share.Or(0)*40
	if !strings.Contains(all[0].Note, "sized for ") || !all[1].NoMore || slow > fast/100 {
		t.Errorf("%v/s and %v/s, want the first sized and nearly none of the second: %+v", fast, slow, all)
	}
}
