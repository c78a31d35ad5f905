package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

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
