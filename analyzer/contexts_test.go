package analyzer

import (
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// filling is a replica whose running requests have contexts that are longer by a factor than those
// of a model's lengths.
func filling(m Model, factor, rate float64) *fleet.Usage {
	u := showing(m, h100().Cost, rate)
	mix, _ := m.mix(fleet.RoleBoth, 0, &Memo{})
	_, contexts := mix.Work(queueing.Profile{PerContextToken: 1}, 0)
	running := 20.0
	u.MeanRunning = fleet.Observed(running)
	u.MeanKV = fleet.Observed(factor * running * contexts / (mix.MeanOutput() - 1) / u.KVTokens.Value)
	return &u
}

func TestLongerContextsLowerTheCapacity(t *testing.T) {
	capacity := func(factor, rate, tokens float64) (float64, string) {
		v := Variant{Profile: h100(), Objective: slo(time.Second, 25*time.Millisecond), KVTokens: tokens}
		m := chat(40, v)
		u := filling(m, factor, rate)
		if tokens > 0 {
			u.MeanKV.Value *= u.KVTokens.Value / tokens
			u.KVTokens = fleet.Observed(tokens)
		}
		m.Variants[0].Replicas = []*fleet.Usage{u}
		got, c := capacityOf(m, Options{})
		return got, c.Note
	}
	alike, note := capacity(1, 8, 0)
	if strings.Contains(note, "contexts") {
		t.Errorf("contexts of independent lengths: %s", note)
	}
	for _, shorter := range []float64{0, 0.5, 0.9} {
		if got, _ := capacity(shorter, 8, 0); got != alike {
			t.Errorf("contexts ×%v: %.2f/s, want no bonus over %.2f/s", shorter, got, alike)
		}
	}
	// Half of the work of decoding is that of contexts.
	longer, note := capacity(1.3, 8, 0)
	if !(longer < 0.96*alike && longer > 0.75*alike) || !strings.Contains(note, "contexts of running requests ×1.3") {
		t.Errorf("contexts ×1.3: %.2f/s instead of %.2f/s, %s", longer, alike, note)
	}
	if most, far := must(capacity(2, 8, 0)), must(capacity(20, 8, 0)); most > 1.05*far || far > 1.05*most {
		t.Errorf("contexts ×2: %.2f/s, ×20: %.2f/s, want the same", most, far)
	}
	if few := must(capacity(1.3, 0.04, 0)); !(few > 0.97*alike) {
		t.Errorf("contexts ×1.3 of a dozen requests: %.2f/s instead of %.2f/s", few, alike)
	}
	small, _ := capacity(1, 8, 40_000)
	if filled := must(capacity(1.3, 8, 40_000)); !(filled < 0.9*small) {
		t.Errorf("a small KV cache with contexts ×1.3: %.2f/s instead of %.2f/s", filled, small)
	}
}

// must returns the rate of a capacity.
func must(rate float64, _ string) float64 { return rate }

func TestUnknownGaugesDoNotMeasureContexts(t *testing.T) {
	m := chat(40, Variant{Role: fleet.RoleBoth, Profile: h100(), Objective: slo(time.Second, 25*time.Millisecond)})
	for name, change := range map[string]func(u *fleet.Usage){
		"no rate":       func(u *fleet.Usage) { u.MeanRate = fleet.Reading{} },
		"no KV usage":   func(u *fleet.Usage) { u.MeanKV = fleet.Reading{} },
		"no batch":      func(u *fleet.Usage) { u.MeanRunning = fleet.Reading{} },
		"no cache size": func(u *fleet.Usage) { u.KVTokens = fleet.Reading{} },
		"few scrapes":   func(u *fleet.Usage) { u.Scrapes = MinScrapes - 1 },
	} {
		u := filling(m, 1.5, 8)
		change(u)
		m.Variants[0].Replicas = []*fleet.Usage{u}
		if got := m.batch(fleet.RoleBoth); got != (queueing.Batch{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	m.Variants = append(m.Variants, Variant{Role: fleet.RoleBoth, Replicas: []*fleet.Usage{filling(m, 1.5, 8)}})
	if got := m.batch(fleet.RoleBoth); got.Requests != 8*peakSeconds {
		t.Errorf("%+v, want those of the other variant", got)
	}
	if got := m.batch(fleet.RoleDecode); got != (queueing.Batch{}) {
		t.Errorf("of another role: %+v", got)
	}
}

// A window of few requests is completed by a longer one, as their lengths are.
func TestContextsOfFewRequestsAreThoseOfALongerWindow(t *testing.T) {
	m := chat(40, Variant{Role: fleet.RoleBoth, Profile: h100(), Objective: slo(time.Second, 25*time.Millisecond)})
	batch := func(rate float64) queueing.Batch {
		u := filling(m, 1, rate)
		u.Calibration = u.Calibrating()
		u.Calibration.LongKV, u.Calibration.LongRunning = fleet.Observed(0.3), fleet.Observed(10)
		m.Variants[0].Replicas = []*fleet.Usage{u}
		return m.batch(fleet.RoleBoth)
	}
	perRequest := func(b queueing.Batch) float64 { return b.Tokens / b.Running }
	recent, long := perRequest(batch(8)), 0.3*400_000/10
	if few := perRequest(batch(0.04)); !(few > 0.9*long && few < long) {
		t.Errorf("%.0f tokens for each of a dozen requests, want nearly %.0f", few, long)
	}
	if half := perRequest(batch(500. / peakSeconds)); !(half > 1.1*recent && half < 0.9*long) {
		t.Errorf("%.0f tokens for each of 500 requests, want some between %.0f and %.0f", half, recent, long)
	}
	if got := batch(500. / peakSeconds).Requests; got < 1500 || got > 2000 {
		t.Errorf("%.0f requests, want half of 500 and half of 3,000", got)
	}
}

// The time between tokens shows longer contexts too: they do not count twice.
func TestLongerContextsAreNoErrorOfTheProfile(t *testing.T) {
	const factor = 1.3
	m := chat(40, Variant{Profile: h100(), Objective: slo(time.Second, 25*time.Millisecond)})
	cost := h100().Cost
	cost.Gamma *= factor
	u := showing(m, cost, 8)
	u.MeanRunning, u.MeanKV = filling(m, factor, 8).MeanRunning, filling(m, factor, 8).MeanKV
	m.Variants[0].Replicas = []*fleet.Usage{&u}
	if _, c := capacityOf(m, Options{}); !strings.Contains(c.Note, "iteration ×1.00, decode ×1.00, prefill ×1.00, contexts of running requests ×1.3") {
		t.Error(c.Note)
	}
}
