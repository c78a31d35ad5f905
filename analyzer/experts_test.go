package analyzer

import (
	"math"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// withExperts is an engine with 12 ms of experts.
func withExperts(sparsity float64) *fleet.Profile {
	p := h100()
	p.Cost.Experts, p.Cost.Sparsity = 12, sparsity
	return p
}

// Every tangent is slower than the engine, so the fastest one is the nearest to it. The search is
// within 4 % of it.
func TestExpertsAreSizedByTheBestTangent(t *testing.T) {
	for _, sparsity := range []float64{0, 4, 16, 48} {
		for _, itl := range []time.Duration{15, 20, 25, 40, 80} {
			v := Variant{Profile: withExperts(sparsity), Objective: slo(2*time.Second, itl*time.Millisecond)}
			m := chat(400, v)
			got := latencies(m, Options{Memo: &Memo{}})[0].rate
			best := 0.0
			for batch := 1.0; batch <= DefaultMaxSequences; batch *= 1.1 {
				line := *v.Profile
				line.Cost = line.Cost.Linear(batch)
				w := v
				w.Profile = &line
				best = max(best, latencies(chat(400, w), Options{Memo: &Memo{}})[0].rate)
			}
			if got > best*1.001 || got < best*0.96 {
				t.Errorf("sparsity %v, ITL %v ms: %v/s, the best of all tangents %v/s", sparsity, int(itl), got, best)
			}
		}
	}
}

func TestExpertsThatTakeNoTimeChangeNothing(t *testing.T) {
	m := func(p *fleet.Profile) Model {
		return chat(40, Variant{Profile: p, Objective: slo(time.Second, 25*time.Millisecond)})
	}
	p := h100()
	p.Cost.Sparsity = 32
	want, _ := capacityOf(m(h100()), Options{})
	if got, _ := capacityOf(m(p), Options{}); got != want {
		t.Errorf("%v/s with a sparsity alone, %v/s without", got, want)
	}
}

// Prompts use all experts, as many as they are.
func TestPrefillReplicasUseAllExperts(t *testing.T) {
	all := h100()
	all.Cost.Alpha += 12
	of := func(p *fleet.Profile) float64 {
		v := Variant{Profile: p, Role: fleet.RolePrefill, Objective: slo(2*time.Second, 0)}
		return latencies(chat(40, v), Options{Memo: &Memo{}})[0].rate
	}
	if got, want := of(withExperts(32)), of(all); math.Abs(got/want-1) > 1e-6 || want <= 0 {
		t.Errorf("%v/s, want %v/s", got, want)
	}
}

// The metrics of replicas of the very engine leave its profile as it is, at any load.
func TestCalibrationOfExpertsKeepsAProfileThatIsRight(t *testing.T) {
	p := withExperts(32)
	want, _ := capacityOf(chat(40, Variant{Profile: p, Objective: slo(2*time.Second, 40*time.Millisecond)}), Options{})
	mix, _ := chat(40).mix(fleet.RoleBoth, 0, &Memo{})
	for _, rate := range []float64{2, 5, 8} {
		batch := 32.0
		for range 100 { // the batch of this rate
			batch = mix.Batch(queueing.Replica{Profile: Seconds(p.Cost.Linear(batch)), MaxSequences: 256}, rate)
		}
		r := showing(chat(40), p.Cost.Linear(batch), rate)
		r.MeanRunning, r.MeanKV = fleet.Observed(batch), fleet.Reading{}
		r.ITLFloor = fleet.Observed((p.Cost.Alpha + p.Cost.Experts*p.Cost.Touched(1)) / 1e3)
		v := Variant{Profile: p, Objective: slo(2*time.Second, 40*time.Millisecond), Replicas: replicas(3, r)}
		if got, c := capacityOf(chat(40, v), Options{}); math.Abs(got/want-1) > 0.05 || c.Basis != BasisCalibrated {
			t.Errorf("at %v/s, batch %.0f: %v/s, %+v, want %v/s", rate, batch, got, c, want)
		}
	}
}
