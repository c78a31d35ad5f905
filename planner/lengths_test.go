package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// lengths gives the first load the mean lengths of its requests, now and over half an hour.
func lengths(prompt, output, pastPrompt, pastOutput float64) func(*fleet.Load) {
	return func(l *fleet.Load) {
		l.PromptTokens, l.OutputTokens = fleet.Observed(prompt), fleet.Observed(output)
		l.PastPromptTokens, l.PastOutputTokens = fleet.Observed(pastPrompt), fleet.Observed(pastOutput)
	}
}

// Requests that are shorter than those of the past half an hour may soon be as long again: starts
// for a cheaper mix have to pay for themselves as soon as that.
func TestShorterRequestsAreNotExpectedToLast(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*fleet.Load)
		shorter bool
	}{
		"as before":           {lengths(1000, 200, 1000, 200), false},
		"hardly shorter":      {lengths(860, 172, 1000, 200), false},
		"shorter prompts":     {lengths(840, 200, 1000, 200), true},
		"shorter outputs":     {lengths(1000, 168, 1000, 200), true},
		"longer":              {lengths(1000, 200, 100, 20), false},
		"a past that is zero": {lengths(1000, 200, 0, 0), false},
		"no past": {func(l *fleet.Load) {
			lengths(1000, 200, 2000, 400)(l)
			l.PastPromptTokens, l.PastOutputTokens = fleet.Reading{}, fleet.Reading{}
		}, false},
		"nothing known now": {func(l *fleet.Load) {
			lengths(0, 0, 2000, 400)(l)
			l.PromptTokens, l.OutputTokens = fleet.Reading{}, fleet.Reading{}
		}, false},
	} {
		s := oneH100(1).load(test.change)
		horizon := func() time.Duration { r := roundOf(s.Snapshot); return r.horizon(r.models[0]) }
		if got := horizon(); test.shorter && got != lengthsWindow || !test.shorter && got != 30*time.Minute {
			t.Errorf("%s, nothing known of the rate before: %v", name, got)
		}
		s.served(func(_ int, p *fleet.LatencyPart) { rated(p, 16.5) })
		if got := horizon(); test.shorter && got != lengthsWindow || !test.shorter && got != 30*time.Minute {
			t.Errorf("%s: %v", name, got)
		}
		s.served(func(i int, p *fleet.LatencyPart) { // another rate until two minutes ago
			if rated(p, 16.5); i < servedParts-1 {
				rated(p, 4)
			}
		})
		if got := horizon(); got >= lengthsWindow {
			t.Errorf("%s, at a rate of minutes: %v", name, got)
		}
	}
}

// A few requests are shorter by chance, and replicas for requests that are not served are needed
// however long these last.
func TestOnlyAServedDemandOfManyRequestsBecomesShorter(t *testing.T) {
	horizon := func(s *scenario) time.Duration {
		r := roundOf(s.load(lengths(500, 100, 1000, 200)).Snapshot)
		return r.horizon(r.models[0])
	}
	few := oneH100(1).load(func(l *fleet.Load) { l.Arrivals = fleet.Observed(0.9) })
	for i := range few.Usages {
		few.Usages[i].FirstTokens, few.Usages[i].WaitingGrowth = fleet.Observed(0.4), fleet.Observed(0)
	}
	if got := horizon(few); got != 30*time.Minute {
		t.Errorf("%v for 270 requests in five minutes", got)
	}
	if got := horizon(oneH100(1).gateway(2000, 60)); got != 30*time.Minute {
		t.Errorf("%v for a demand that is not served", got)
	}
}

// A row that is newer may lack the past that an older one has.
func TestPastLengthsAreThoseOfTheRowThatHasThem(t *testing.T) {
	older, newer := fleet.Load{Time: epoch.Add(-time.Minute)}, fleet.Load{Time: epoch}
	lengths(1000, 200, 900, 180)(&older)
	if got := later(older, newer); got.PastPromptTokens != older.PastPromptTokens || got.PastOutputTokens != older.PastOutputTokens {
		t.Errorf("%v and %v, want those of the older row", got.PastPromptTokens, got.PastOutputTokens)
	}
	lengths(1000, 200, 800, 160)(&newer)
	if got := later(older, newer); got.PastPromptTokens != newer.PastPromptTokens || got.PastOutputTokens != newer.PastOutputTokens {
		t.Errorf("%v and %v, want those of the newer row", got.PastPromptTokens, got.PastOutputTokens)
	}
}

// Of several served names, the past is that of the one whose lengths count.
func TestShorterRequestsAreThoseOfOneName(t *testing.T) {
	shorter := func(pastOfBusy, pastOfOther float64) bool {
		s := oneH100(1).load(lengths(1000, 200, pastOfBusy, 200))
		s.load(func(l *fleet.Load) { l.OutputTokens = fleet.Reading{} })
		other := s.Loads[0]
		lengths(500, 200, pastOfOther, 200)(&other)
		other.PeakArrivals = fleet.Observed(other.PeakArrivals.Value / 2)
		r := roundOf(s.Snapshot)
		m := r.models[0].model
		m.engine = append(m.engine, other)
		d := demand{arrivals: fleet.Observed(16.5)}
		m.describeRequests(&d)
		return d.shorter
	}
	if !shorter(2000, 500) {
		t.Error("prompts of the busy name are half as long as before")
	}
	if shorter(1000, 1000) {
		t.Error("prompts of the other name count")
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
