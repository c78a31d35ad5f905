package analyzer

import (
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// byMeans is the model without the histograms of its lengths.
func byMeans(m Model) Model {
	m.Prompts, m.Outputs = nil, nil
	return m
}

func TestUnmeasuredLengthsAreSizedForALongTail(t *testing.T) {
	v := Variant{Profile: h100(), Objective: slo(time.Second, 25*time.Millisecond)}
	measured, ofMeasured := capacityOf(chat(10, v), Options{})
	assumed, ofAssumed := capacityOf(byMeans(chat(10, v)), Options{})
	if !(assumed > 0.2*measured && assumed < 0.85*measured) {
		t.Errorf("%.2f/s by means, %.2f/s by histograms", assumed, measured)
	}
	if ofMeasured.Lengths != "" || !strings.HasPrefix(ofAssumed.Lengths, "prompt and output lengths assumed from their mean") {
		t.Errorf("lengths %q by histograms, %q by means", ofMeasured.Lengths, ofAssumed.Lengths)
	}
	onlyPrompts := chat(10, v)
	onlyPrompts.Outputs = nil
	if _, c := capacityOf(onlyPrompts, Options{}); !strings.HasPrefix(c.Lengths, "output lengths assumed") || strings.Contains(c.Lengths, "prompt_tokens") {
		t.Errorf("with the histogram of prompts: %q", c.Lengths)
	}
	v.Role = fleet.RolePrefill
	onlyPrompts.Variants = []Variant{v}
	if _, c := capacityOf(onlyPrompts, Options{}); c.Lengths != "" {
		t.Errorf("a prefill replica with the histogram of prompts: %q", c.Lengths)
	}
}

// Of prompts of 30,000 tokens on average some would be of 400,000, and take half a minute. But that
// is not known: all of them may be alike.
func TestUnmeasuredLongPromptsAreNotInfeasible(t *testing.T) {
	documents := func(ttft time.Duration, prompts []fleet.Bucket) (float64, Capacity) {
		m := chat(1, Variant{Profile: h100(), Objective: slo(ttft, 80*time.Millisecond), KVTokens: 430_000})
		m.PromptTokens, m.Prompts = fleet.Observed(30_000), prompts
		return capacityOf(m, Options{})
	}
	alike, _ := documents(6*time.Second, []fleet.Bucket{{Upper: 25_000, Count: 20}, {Upper: 35_000, Count: 60}, {Upper: 40_000, Count: 20}})
	rate, c := documents(6*time.Second, nil)
	if c.Infeasible || c.Remedy != "" || !(rate > 0.03*alike && rate < 0.5*alike) {
		t.Errorf("%.3f/s by means, %.3f/s with prompts that are alike: %s", rate, alike, c.Remedy)
	}
	if !strings.Contains(c.Note, "least useful rate") || c.Lengths == "" {
		t.Errorf("note %q, lengths %q", c.Note, c.Lengths)
	}
	if _, c := documents(6*time.Second, []fleet.Bucket{{Upper: 10_000, Count: 75}, {Upper: 100_000, Count: 10}, {Upper: 200_000, Count: 15}}); !c.Infeasible {
		t.Errorf("%+v, want infeasible: prompts of 200,000 tokens are measured", c)
	}
	if _, c := documents(500*time.Millisecond, nil); !c.Infeasible || c.Remedy == "" {
		t.Errorf("%+v, want infeasible: even the mean prompt takes longer", c)
	}
}
