package planner

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// numbersInText are the forms in which a text says the number beside it.
var numbersInText = []*regexp.Regexp{
	regexp.MustCompile(`: (\d+) replicas? kept`), regexp.MustCompile(`per replica.*: (\d+) replicas?$`),
}

// contradictionOf returns the contradiction of a decision's reason and its number; empty if there
// is none.
func contradictionOf(d fleet.Decision) string {
	code, n, now := d.Reason.Code, d.Replicas, d.Facts.Current
	is := func(codes ...fleet.Code) bool { return slices.Contains(codes, code) }
	for _, form := range numbersInText {
		if m := form.FindStringSubmatch(d.Reason.Text); m != nil && m[1] != strconv.Itoa(n) {
			return "the text has another number"
		}
	}
	switch text := d.Reason.String(); {
	case n <= now && is(fleet.CodeScaleUp, fleet.CodeScaleFromZero), n >= now && is(fleet.CodeScaleDown, fleet.CodeScaleToZero):
		return "the code has another direction"
	case n != now && is(fleet.CodeUnchanged, fleet.CodeStartsForCurrentDemand), n == now && is(fleet.CodeRebalance):
		return "the code and the change differ"
	case n < now && is(fleet.CodeMetricsMissing, fleet.CodeWindowNotCovered, fleet.CodeSLOMissed, fleet.CodeScaleInPaused):
		return "a blocked scale-down scales down"
	case n > now && is(fleet.CodeNotStarting, fleet.CodeNoBenefit, fleet.CodeScaleOutPaused, fleet.CodeInsufficientAccelerators):
		return "a limited scale-up scales up"
	case n > 0 && strings.Contains(text, "scaled to zero"), n < now && strings.Contains(text, "scale-down blocked"):
		return "the text and the number differ"
	case is(fleet.CodeScaleDown) && strings.Contains(d.Reason.Text, "unserved"):
		return "it scales down although demand is unserved"
	}
	return ""
}

func TestNoReasonContradictsItsNumber(t *testing.T) {
	codes := map[fleet.Code]bool{}
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 77))
		var s fleet.Snapshot
		if s = serving(t); seed%2 == 0 {
			s = limitedFleet(random).Snapshot
		} else {
			hostile(&s, 0, random)
			hostile(&s, 1, random)
		}
		for _, d := range Plan(s, Policy{}).Decisions {
			codes[d.Reason.Code] = true
			if text := contradictionOf(d); text != "" && !d.Held {
				t.Errorf("seed %d: %s: %s: %d -> %d: %s: %s", seed, text, d.Variant, d.Facts.Current, d.Replicas, d.Reason.Code, d.Reason)
			}
		}
	}
	if len(codes) < 20 {
		t.Errorf("%d codes occur; the generator is one-sided", len(codes))
	}
}
