package analyzer

import (
	"math"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// single returns the capacity of a replica that gets all requests of the model, by the queueing
// model alone.
func single(t *testing.T, m Model, v Variant) float64 {
	t.Helper()
	mix, why := m.mix(v.Role, 0, &Memo{})
	if mix == nil {
		t.Fatal(why)
	}
	replica := v.engine(m)
	replica.Profile = Seconds(v.Profile.Cost)
	dispersion := steps(max(1, m.Dispersion.Or(1)/dispersionDeviation), coarseDispersion)
	answer, err := new(queueing.Sizer).MaxRate(queueing.Question{Replica: replica, Mix: mix, Objective: v.objective(), Dispersion: dispersion})
	if err != nil {
		t.Fatal(err)
	}
	return min(answer.Rate, mostOfThroughput*mix.FullBatch(replica).Rate)
}

func TestOneReplicaIsSizedAsIfAlone(t *testing.T) {
	for _, objective := range []fleet.Objective{slo(time.Second, 25*time.Millisecond), slo(300*time.Millisecond, 50*time.Millisecond), slo(time.Second, 0)} {
		for _, dispersion := range []float64{1, 3, 6} {
			v := Variant{Profile: h100(), Objective: objective}
			m := chat(5, v)
			m.Dispersion = fleet.Observed(dispersion)
			alone := single(t, m, v)
			got, c := capacityOf(m, Options{})
			if math.Abs(got/alone-1) > 1e-12 {
				t.Errorf("%v, dispersion %v: %v/s, %v/s alone", objective, dispersion, got, alone)
			}
			mean := alone / c.Pool.At(1)
			if enough := c.Pool.Required(alone * (1 - 1e-9) / mean); enough > 1 {
				t.Errorf("%v, dispersion %v: the capacity of a replica requires %v", objective, dispersion, enough)
			}
			if more := c.Pool.Required(alone * (1 + 1e-6) / mean); more <= 1 {
				t.Errorf("%v, dispersion %v: more than the capacity of a replica requires %v", objective, dispersion, more)
			}
		}
	}
}

func TestPoolsNeedLessHeadroomTheLargerTheyAre(t *testing.T) {
	v := Variant{Profile: h100(), Objective: slo(300*time.Millisecond, 50*time.Millisecond)}
	m := chat(5, v)
	m.Dispersion = fleet.Observed(4)
	alone, last := single(t, m, v), 0.0
	for _, replicas := range []float64{1, 2, 4, 16, 64} {
		m.Rate = fleet.Observed(0.8 * alone * replicas)
		got, _ := capacityOf(m, Options{})
		if got < last {
			t.Errorf("%v replicas' demand: %v/s each, %v/s in a smaller pool", replicas, got, last)
		}
		last = got
	}
	if last < 1.12*alone {
		t.Errorf("%v/s each in a large pool, %v/s alone", last, alone)
	}
}

func TestRequiredIsTheInverseOfThePool(t *testing.T) {
	for _, p := range []Pool{{}, {Alone: 1, Exponent: 1}, {Alone: 0.9, Exponent: 0.5}, {Alone: 0.3, Exponent: 1}, {Alone: 1e-3}, {Alone: 1e-3, Exponent: 2}} {
		last := 0.0
		for demand := 0.001; demand < 1e4; demand *= 1.3 {
			n := p.Required(demand)
			if served := n * p.At(n); math.Abs(served/demand-1) > 1e-9 {
				t.Errorf("%+v: %v replicas for %v serve %v", p, n, demand, served)
			}
			if n < last || n < demand*(1-1e-9) {
				t.Errorf("%+v: %v replicas for %v, %v for less", p, n, demand, last)
			}
			last = n
		}
	}
}

func TestLimitsOtherThanLatencyNeedNoHeadroom(t *testing.T) {
	v := Variant{Profile: h100(), Objective: slo(time.Second, 25*time.Millisecond)}
	m := chat(40)
	full := showing(m, h100().Cost, 6)
	full.KV, full.MeanKV, full.KVTokens = fleet.Observed(0.7), fleet.Observed(0.7), fleet.Reading{}
	v.Replicas = replicas(4, full)
	m = chat(40, v)
	if _, c := capacityOf(m, Options{}); c.LimitedBy != LimitKV || c.Pool.At(1) < 1 {
		t.Errorf("limited by %s, a single replica has %v of the mean capacity", c.LimitedBy, c.Pool.At(1))
	}
}

// The queueing model has the wait for a KV cache of a known size: its use is no second limit.
func TestUseOfAKVCacheOfKnownSizeIsNoLimit(t *testing.T) {
	limit := func(size float64, profile *fleet.Profile) Limit {
		m := chat(40)
		full := showing(m, h100().Cost, 6)
		full.KV, full.MeanKV, full.KVTokens = fleet.Observed(0.6), fleet.Observed(0.6), fleet.Reading{}
		if size > 0 {
			full.KVTokens = fleet.Observed(size)
		}
		m.Variants = []Variant{{Profile: profile, Objective: slo(time.Second, 25*time.Millisecond), Replicas: replicas(4, full)}}
		_, c := capacityOf(m, Options{})
		return c.LimitedBy
	}
	if got := limit(0, h100()); got != LimitKV {
		t.Errorf("the size is not known: limited by %s, want the KV cache", got)
	}
	if got := limit(400_000, h100()); got == LimitKV {
		t.Error("the size is known, and is enough: limited by KV cache")
	}
	if got := limit(20_000, h100()); got != LimitKV {
		t.Errorf("the size is known, and is too small: limited by %s, want the KV cache", got)
	}
	if got := limit(400_000, nil); got != LimitKV {
		t.Errorf("no profile: limited by %s, want the KV cache", got)
	}
}

// Replicas with so many requests in flight each.
func inFlight(each ...float64) (rows []*fleet.Usage) {
	for _, n := range each {
		rows = append(rows, &fleet.Usage{Running: fleet.Observed(n), Waiting: fleet.Observed(0), MeanRate: fleet.Observed(1)})
	}
	return rows
}

func TestEvennessIsMeasuredByRequestsInFlight(t *testing.T) {
	for name, test := range map[string]struct {
		variants [][]*fleet.Usage
		want     float64
	}{
		"nothing is measured":           {nil, 1},
		"one replica":                   {[][]*fleet.Usage{inFlight(30)}, 1},
		"balanced":                      {[][]*fleet.Usage{inFlight(30, 31, 30, 29, 30, 30, 31, 30)}, 1},
		"balanced within each variant":  {[][]*fleet.Usage{inFlight(30, 30, 30, 30, 30), inFlight(5, 5, 5, 5, 5)}, 1},
		"rounded up and down":           {[][]*fleet.Usage{inFlight(1, 2, 2, 1, 2, 1, 2, 1, 1, 2, 1, 2)}, 1},
		"a few replicas tell little":    {[][]*fleet.Usage{inFlight(30, 40)}, 0.75},
		"as uneven as random":           {[][]*fleet.Usage{inFlight(24, 36, 31, 22, 29, 35, 40, 27, 33, 24, 26, 35, 21, 38, 30, 31)}, 0.25},
		"one replica has all":           {[][]*fleet.Usage{inFlight(180, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)}, 0},
		"a replica that just started":   {[][]*fleet.Usage{append(inFlight(30, 30, 30, 30, 30, 30), &fleet.Usage{Running: fleet.Observed(1)})}, 1},
		"nearly no load":                {[][]*fleet.Usage{inFlight(0, 1, 0, 3, 0, 0, 1, 0)}, 1},
		"too light a load to be judged": {[][]*fleet.Usage{inFlight(0, 6, 1, 2, 6, 1, 7, 3, 0, 4, 2, 9, 1, 6, 0, 8)}, 1},
	} {
		var m Model
		for _, rows := range test.variants {
			m.Variants = append(m.Variants, Variant{Replicas: rows})
		}
		if got := m.evenness(); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestRandomRoutingDoesNotPool(t *testing.T) {
	m := chat(40)
	m.Dispersion = fleet.Observed(4)
	for range 20 {
		m.Variants = append(m.Variants, Variant{Replicas: inFlight(60, 10, 10, 10, 10)})
	}
	for _, part := range []float64{1, 0.5, 0.1} {
		if got, want := m.arrivals().dispersionOf(part), 1+part*(steps(m.dispersion(), coarseDispersion)-1); math.Abs(got-want) > 0.1 {
			t.Errorf("dispersion %v of a part of %v, want %v", got, part, want)
		}
	}
}

// BenchmarkShare asks for one variant, without the answers of the cycle before and with them.
func BenchmarkShare(b *testing.B) {
	v := Variant{Profile: h100(), Objective: slo(time.Second, 25*time.Millisecond)}
	m := chat(40, v)
	memo := &Memo{}
	mix, _ := m.mix(v.Role, 0, memo)
	replica := v.engine(m)
	replica.Profile = Seconds(v.Profile.Cost)
	q := queueing.Question{Replica: replica, Mix: mix, Objective: v.objective()}
	for name, forget := range map[string]func(){"first": func() { memo.answers.forget(memo.cycle + 1) }, "next": func() {}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				forget()
				if _, err := m.share(q, Options{Memo: memo}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
