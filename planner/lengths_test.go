package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// Requests that are shorter than those of the past half an hour may soon be as long again: a mix
// that is cheaper for them has to pay for its starts as soon as that.
func TestShorterRequestsAreNotExpectedToLast(t *testing.T) {
	for name, test := range map[string]struct {
		prompt, output, pastPrompt, pastOutput fleet.Reading
		shorter                                bool
	}{
		"as before":         {fleet.Observed(1000), fleet.Observed(200), fleet.Observed(1100), fleet.Observed(220), false},
		"shorter prompts":   {fleet.Observed(1000), fleet.Observed(200), fleet.Observed(1250), fleet.Observed(200), true},
		"shorter outputs":   {fleet.Observed(1000), fleet.Observed(200), fleet.Observed(1000), fleet.Observed(250), true},
		"longer":            {fleet.Observed(1000), fleet.Observed(200), fleet.Observed(100), fleet.Observed(20), false},
		"no past":           {fleet.Observed(1000), fleet.Observed(200), fleet.Reading{}, fleet.Reading{}, false},
		"a past that is 0":  {fleet.Observed(1000), fleet.Observed(200), fleet.Observed(0), fleet.Observed(0), false},
		"nothing known now": {fleet.Reading{}, fleet.Reading{}, fleet.Observed(1000), fleet.Observed(200), false},
	} {
		s := oneH100(1).load(func(l *fleet.Load) {
			l.PromptTokens, l.OutputTokens, l.PastPromptTokens, l.PastOutputTokens = test.prompt, test.output, test.pastPrompt, test.pastOutput
		})
		lasts := func() time.Duration { return roundOf(s.Snapshot).models[0].demand.steadyFor }
		if unknown := lasts(); test.shorter && unknown != lengthsWindow || !test.shorter && unknown != 0 {
			t.Errorf("%s, nothing known of the rate before: lasts for %v", name, unknown)
		}
		s.served(func(_ int, p *fleet.LatencyPart) { rated(p, 16.5) })
		if known := lasts(); test.shorter != (known == lengthsWindow) {
			t.Errorf("%s: lasts for %v", name, known)
		}
	}
}

func TestReasonsSayWhichLengthsAreAssumed(t *testing.T) {
	s := newScenario(fast(group{ready: 3, running: 20, kv: 0.1, rate: 10, max: 50})).gateway(0, 60).profiled(time.Second, 25*time.Millisecond)
	assumed := s.decide(t)["fast"]
	if text := assumed.Reason.Detail(fleet.DetailLengths); !strings.Contains(text, "prompt and output lengths assumed") {
		t.Errorf("%s", assumed.Reason.String())
	}
	measured := s.measuredLengths().decide(t)["fast"]
	if text := measured.Reason.Detail(fleet.DetailLengths); text != "" {
		t.Errorf("with histograms: %s", measured.Reason.String())
	}
	if assumed.Replicas <= measured.Replicas {
		t.Errorf("%d replicas for assumed lengths, %d for measured ones", assumed.Replicas, measured.Replicas)
	}
	s.Variants[0].Profile, s.Variants[0].Objective = fleet.EngineCost{}, fleet.Objective{}
	s.load(func(l *fleet.Load) { l.PromptLengths, l.OutputLengths = nil, nil })
	if d := s.decide(t)["fast"]; d.Reason.Detail(fleet.DetailLengths) != "" {
		t.Errorf("by saturation: %s", d.Reason.String())
	}
}
