package planner

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// servedParts is the parts of three windows.
const servedParts = 3 * partsOfWindow

// served gives the engines' load three windows of parts with 100 requests each, of which a fifth is
// slower than 50 ms a token and two seconds to the first one.
func (s *scenario) served(change func(i int, p *fleet.LatencyPart)) *scenario {
	return s.load(func(l *fleet.Load) {
		l.Latencies = fleet.Latencies{Until: epoch, Length: fleet.Duration(partLength)}
		for i := range servedParts {
			p := fleet.LatencyPart{
				End: epoch.Add(-time.Duration(servedParts-1-i) * partLength), Requests: 100, Replicas: 3,
				TTFT: []fleet.Bucket{{Upper: 2, Count: 80}, {Count: 20}}, ITL: []fleet.Bucket{{Upper: 0.05, Count: 80}, {Count: 20}},
			}
			if change != nil {
				change(i, &p)
			}
			l.Latencies.Parts = append(l.Latencies.Parts, p)
		}
	})
}

// itlOf has the times between tokens of some requests, of which a share is within 50 ms.
func itlOf(requests, within float64) []fleet.Bucket {
	return []fleet.Bucket{{Upper: 0.05, Count: requests * within}, {Count: requests * (1 - within)}}
}

// missing20 is a model with an objective that a fifth of its requests miss.
func missing20() *scenario {
	g := cheap(group{ready: 3, running: 50, kv: 0.5, rate: 5, objective: 50 * time.Millisecond})
	return newScenario(g).served(nil)
}

// planHeadroom returns the factor of a model; false if nothing is corrected.
func planHeadroom(p fleet.Plan, id fleet.ModelID) (float64, bool) {
	for _, m := range p.Models {
		if m.ID == id {
			return m.Headroom.Known()
		}
	}
	return 0, false
}

func headroomOf(s *scenario, p Policy) float64 {
	factor, known := planHeadroom(Plan(s.Snapshot, p), s.Variants[0].Model)
	if !known {
		return 1
	}
	return factor
}

func TestMissesRaiseTheHeadroom(t *testing.T) {
	s := missing20()
	if got := headroomOf(s, Policy{}); math.Abs(got-1.3) > 0.01 {
		t.Fatalf("a fifth of the requests missed: headroom ×%v, want ×1.3", got)
	}
	const want = "80 % within SLO over 1 h, objective 95 %: headroom ×1.30"
	if got := s.decide(t)["cheap"].Reason.Detail(fleet.DetailBudget); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if model := Plan(s.Snapshot, Policy{}).Models[0]; math.Abs(model.Attainment.Or(0)-0.8) > 1e-9 {
		t.Errorf("attainment %+v, want 0.8", model.Attainment)
	}
}

// TestErrorBudgetMovesReplicas has a demand that the headroom of a replica less decides.
func TestErrorBudgetMovesReplicas(t *testing.T) {
	replicas := func(itl []fleet.Bucket) int {
		g := cheap(group{ready: 6, running: 10, kv: 0.1, rate: 1, objective: 50 * time.Millisecond})
		s := newScenario(g).served(func(_ int, p *fleet.LatencyPart) { p.ITL = itl })
		return s.load(func(l *fleet.Load) { l.PeakArrivals = fleet.Observed(23) }).decide(t)["cheap"].Replicas
	}
	met := replicas([]fleet.Bucket{{Upper: 0.05, Count: 100}, {}})
	missed := replicas([]fleet.Bucket{{Upper: 0.05, Count: 20}, {Count: 80}})
	if !(met < missed) {
		t.Errorf("%d replicas while the objective is met, %d while it is missed", met, missed)
	}
}

func TestHeadroomIsKeptIf(t *testing.T) {
	every := func(change func(p *fleet.LatencyPart)) func(*scenario) {
		return func(s *scenario) { s.served(func(_ int, p *fleet.LatencyPart) { change(p) }) }
	}
	for name, change := range map[string]func(*scenario){
		"no part is known":                  func(s *scenario) { s.load(func(l *fleet.Load) { l.Latencies.Parts = nil }) },
		"no latency is known":               every(func(p *fleet.LatencyPart) { p.ITL = nil }),
		"the number of requests is NaN":     every(func(p *fleet.LatencyPart) { p.Requests = math.NaN() }),
		"it is infinite":                    every(func(p *fleet.LatencyPart) { p.Requests = math.Inf(1) }),
		"it is negative":                    every(func(p *fleet.LatencyPart) { p.Requests = -100 }),
		"it is huge":                        every(func(p *fleet.LatencyPart) { p.Requests = 1e300 }),
		"the window has few requests":       every(func(p *fleet.LatencyPart) { p.Requests = 9 }),
		"replicas started in all parts":     every(func(p *fleet.LatencyPart) { p.Started = 1 }),
		"the model was at its maximum":      every(func(p *fleet.LatencyPart) { p.Replicas = 10 }),
		"the maximum is what it has":        func(s *scenario) { s.Variants[0].Range.Max = 3 },
		"no accelerator is free":            func(s *scenario) { s.node("L40S", "n", 3, 3) },
		"replicas do not become ready":      func(s *scenario) { s.Workloads[0].Replicas, s.Workloads[0].ReplicaFailure = 4, "exceeded quota" },
		"scale-up is paused":                func(s *scenario) { s.Variants[0].Pause.Out = true },
		"the parts are of the future":       func(s *scenario) { s.load(func(l *fleet.Load) { l.Latencies.Until = epoch.Add(-3 * time.Hour) }) },
		"the parts have no length":          func(s *scenario) { s.load(func(l *fleet.Load) { l.Latencies.Length = 0 }) },
		"the variant has no objective":      func(s *scenario) { s.Variants[0].Objective = fleet.Objective{} },
		"no load meets the objective":       infeasibleNow,
		"prefill and decode are separate":   func(s *scenario) { s.Variants[0].Role = fleet.RoleDecode },
		"the variants' objectives differ":   differentObjectives,
		"engines report under two names":    twoNames,
		"a replica has been starting since": func(s *scenario) { startingSince(s, 3*time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			s := missing20()
			change(s)
			if got := headroomOf(s, Policy{}); got != 1 {
				t.Errorf("headroom ×%v, want it unchanged", got)
			}
		})
	}
	if got := headroomOf(missing20(), Policy{BudgetOff: true}); got != 1 {
		t.Errorf("switched off: headroom ×%v", got)
	}
}

func infeasibleNow(s *scenario) {
	s.Variants[0].Profile = fleet.EngineCost{Alpha: 60, Beta: 0.1, Gamma: 0.1, Prefill: 0.1}
}

func differentObjectives(s *scenario) {
	s.add(fast(group{objective: 40 * time.Millisecond}))
}

func twoNames(s *scenario) {
	s.add(fast(group{objective: 50 * time.Millisecond, variant: func(v *fleet.Variant) { v.ServedName = "llama" }}))
	s.Loads = append(s.Loads, s.Loads[0])
	s.Loads[len(s.Loads)-1].Model = "llama"
}

// startingSince makes a replica of a slow target one that is not ready yet.
func startingSince(s *scenario, age time.Duration) {
	s.Workloads[0].Startup = age
	s.Workloads[0].Replicas++
	s.Workloads[0].Pods = append(s.Workloads[0].Pods, fleet.Pod{Name: "cheap-new", Created: epoch.Add(-age)})
}

// TestMissesWhileAReplicaStartsDoNotCount has misses only in the parts of a start, before the part
// in which the replica began to report, and of one that starts now.
func TestMissesWhileAReplicaStartsDoNotCount(t *testing.T) {
	met := []fleet.Bucket{{Upper: 0.05, Count: 100}, {}}
	inPart := func(first, last int, change func(s *scenario, parts []fleet.LatencyPart)) fleet.Reading {
		s := missing20().served(func(i int, p *fleet.LatencyPart) {
			if i < first || i > last {
				p.ITL = met
			}
		})
		s.load(func(l *fleet.Load) { change(s, l.Latencies.Parts) })
		return Plan(s.Snapshot, Policy{}).Models[0].Attainment
	}
	none := func(*scenario, []fleet.LatencyPart) {}
	if got := inPart(50, 51, none).Or(0); got >= 1 {
		t.Fatalf("attainment %v without a start, want misses", got)
	}
	for name, got := range map[string]fleet.Reading{
		"as the engines show": inPart(50, 51, func(_ *scenario, parts []fleet.LatencyPart) { parts[51].Started = 1 }),
		"as a pod shows": inPart(50, 51, func(s *scenario, parts []fleet.LatencyPart) {
			pod := &s.Workloads[0].Pods[0]
			pod.Created, pod.ReadyAt = parts[49].End, parts[49].End.Add(time.Minute)
			parts[51].ITL = met
		}),
		"now": inPart(59, 59, func(s *scenario, _ []fleet.LatencyPart) { startingSince(s, time.Minute) }),
	} {
		if got != fleet.Observed(1) {
			t.Errorf("%s: attainment %+v, want 1", name, got)
		}
	}
}

func TestGatewayWaitIsPartOfTheTTFT(t *testing.T) {
	attainment := func(wait []fleet.Bucket) float64 {
		s := missing20().gateway(0, 15)
		s.Variants[0].Objective = fleet.Objective{TTFT: 2 * time.Second, Percentile: 0.9}
		gateway := &s.Loads[len(s.Loads)-1]
		gateway.Latencies = fleet.Latencies{Until: epoch, Length: fleet.Duration(partLength)}
		for i := range servedParts {
			gateway.Latencies.Parts = append(gateway.Latencies.Parts, fleet.LatencyPart{End: epoch.Add(-time.Duration(servedParts-1-i) * partLength), Wait: wait})
		}
		return Plan(s.Snapshot, Policy{}).Models[0].Attainment.Or(-1)
	}
	for want, wait := range map[float64][]fleet.Bucket{
		0.8: nil, 0.7: {{Upper: 2, Count: 90}, {Count: 10}}, 0: {{Upper: 2, Count: 10}, {Count: 90}},
	} {
		if got := attainment(wait); math.Abs(got-want) > 1e-9 {
			t.Errorf("waits %v: attainment %v, want %v", wait, got, want)
		}
	}
}

func TestBothLatenciesCount(t *testing.T) {
	s := missing20().served(func(_ int, p *fleet.LatencyPart) {
		p.TTFT = []fleet.Bucket{{Upper: 2, Count: 90}, {Count: 10}}
	})
	s.Variants[0].Objective = fleet.Objective{TTFT: 2 * time.Second, ITL: 50 * time.Millisecond, Percentile: 0.95}
	got := s.decide(t)["cheap"].Reason.Detail(fleet.DetailBudget)
	if !strings.HasPrefix(got, "80 % (70 % to 80 %) within SLO") {
		t.Errorf("%q, want the worse of the two, and that they may be of different requests", got)
	}
}

func TestFewRequestsAreSaid(t *testing.T) {
	s := missing20().served(func(_ int, p *fleet.LatencyPart) { p.Requests = 6 })
	const want = "120 of 200 requests over 1 h that a correction needs: headroom ×1.00"
	if got := s.decide(t)["cheap"].Reason.Detail(fleet.DetailBudget); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPartsWithoutEvidenceMoveNothing has a gap of half an hour after misses: the factor is that of
// the parts before it, wherever the gap comes from.
func TestPartsWithoutEvidenceMoveNothing(t *testing.T) {
	history := func(gap int, change func(p *fleet.LatencyPart)) float64 {
		s := missing20()
		s.load(func(l *fleet.Load) {
			parts := l.Latencies.Parts
			for i := range parts {
				if i < servedParts-gap-10 { // met until half an hour before the gap
					parts[i].ITL = []fleet.Bucket{{Upper: 0.05, Count: 97}, {Count: 3}}
				}
				if i >= servedParts-gap {
					parts[i].ITL = []fleet.Bucket{{Upper: 0.05, Count: 1}, {Count: 99}}
					change(&parts[i])
				}
			}
		})
		return headroomOf(s, Policy{})
	}
	want := history(0, nil)
	if want <= 1 || want >= 1.3 {
		t.Fatalf("×%v before the gap, want it on its way", want)
	}
	for name, change := range map[string]func(p *fleet.LatencyPart){
		"not known":       func(p *fleet.LatencyPart) { p.ITL = nil },
		"no request":      func(p *fleet.LatencyPart) { p.Requests = 0 },
		"at the maximum":  func(p *fleet.LatencyPart) { p.Replicas = 10 },
		"repeated":        func(p *fleet.LatencyPart) { p.End = epoch.Add(-10 * partLength) },
		"after the query": func(p *fleet.LatencyPart) { p.End = epoch.Add(time.Hour) },
	} {
		if got := history(10, change); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: ×%v after the gap, ×%v before", name, got, want)
		}
	}
}

// The limits of the past are not known: if another model takes the last free accelerator, the parts
// of the error budget are no evidence any more, but its misses still keep replicas.
func TestOthersThatTakeAcceleratorsRemoveNoReplica(t *testing.T) {
	decide := func(others int) fleet.Decision {
		g := cheap(group{ready: 9, running: 50, kv: 0.5, rate: 5, objective: 50 * time.Millisecond, max: 40})
		s := newScenario(g).served(func(_ int, p *fleet.LatencyPart) { p.Replicas, p.ITL = 9, itlOf(100, 0.6) }).node("L40S", "n", 12, others)
		return s.on("cheap", "n", "n", "n", "n", "n", "n", "n", "n", "n").decide(t)["cheap"]
	}
	free, full := decide(2), decide(3)
	if full.Replicas != free.Replicas {
		t.Errorf("%d replicas with a free accelerator, %d without", free.Replicas, full.Replicas)
	}
	const want = "misses within 1 h keep headroom ×1.45 for a scale-down"
	if got := full.Reason.Detail(fleet.DetailBudget); !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A wait at the gateway that is not known is not zero: all requests wait too long.
func TestWaitsOfOtherPartsAreNotKnown(t *testing.T) {
	wait := []fleet.Bucket{{Upper: 2}, {Count: 100}}
	for name, test := range map[string]struct {
		length time.Duration
		until  time.Time
		want   fleet.Reading
	}{
		"the same parts": {partLength, epoch, fleet.Observed(0)},
		"other ends":     {partLength, epoch.Add(-time.Minute), fleet.Reading{}},
		"another length": {2 * partLength, epoch, fleet.Reading{}},
	} {
		s := missing20().gateway(0, 15).served(func(_ int, p *fleet.LatencyPart) {
			p.TTFT = []fleet.Bucket{{Upper: 2, Count: 100}, {}}
		})
		s.Variants[0].Objective = fleet.Objective{TTFT: 2 * time.Second, Percentile: 0.95}
		g := &s.Loads[len(s.Loads)-1]
		g.Latencies = fleet.Latencies{Until: test.until, Length: fleet.Duration(test.length)}
		for end := test.until.Add(-3 * time.Hour); !end.After(test.until); end = end.Add(test.length) {
			g.Latencies.Parts = append(g.Latencies.Parts, fleet.LatencyPart{End: end, Wait: wait})
		}
		if got := Plan(s.Snapshot, Policy{}).Models[0].Attainment; got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// Misses of the past keep replicas, and start none: without them four of the L40S serve alone.
func TestKeptReplicasStartNoOthers(t *testing.T) {
	s := h100AndL40S(1, 4, [2]float64{12, 2.5}, 100*time.Millisecond)
	s.variant("l40s").Cost, s.variant("l40s").Range.Max, s.variant("h100").Range.Max = 0.4, 8, 1
	s.served(func(_ int, p *fleet.LatencyPart) {
		p.Replicas, p.TTFT, p.ITL = 9, []fleet.Bucket{{Upper: 2, Count: 100}, {}}, []fleet.Bucket{{Upper: 0.1, Count: 60}, {Count: 40}}
	})
	d := s.decide(t)
	if d["h100"].Replicas != 1 || d["l40s"].Replicas < 1 || d["l40s"].Replicas > 4 {
		t.Errorf("%d H100, %s, and %d L40S, %s", d["h100"].Replicas, d["h100"].Reason, d["l40s"].Replicas, d["l40s"].Reason)
	}
}

// If few engines of a model report times between tokens, the others may be slower.
func TestTimesBetweenTokensOfFewRequestsAreNotThoseOfAll(t *testing.T) {
	for requests, want := range map[float64]bool{5: false, 45: false, 55: true} {
		s := missing20().served(func(_ int, p *fleet.LatencyPart) { p.ITL = itlOf(requests, 1) })
		if got, known := planHeadroom(Plan(s.Snapshot, Policy{}), s.Variants[0].Model); known != want {
			t.Errorf("%v of 100 requests: headroom ×%v, known %v", requests, got, known)
		}
	}
}

// The parts count pods, of which a group has several.
func TestPodsOfAGroupAreOneReplicaOfAPart(t *testing.T) {
	headroom := func(pods int) float64 {
		s := missing20().served(func(_ int, p *fleet.LatencyPart) { p.Replicas = 3 * pods })
		s.Variants[0].Range.Max = 5
		w := &s.Workloads[0]
		w.GroupSize = pods
		for i := range w.Pods {
			for n := 1; n < pods; n++ {
				u := s.Usages[i]
				u.Pod += "-worker"
				w.Pods[i].Others = append(w.Pods[i].Others, u.Pod)
				s.Usages = append(s.Usages, u)
			}
		}
		return headroomOf(s, Policy{})
	}
	if one, two := headroom(1), headroom(2); one != two {
		t.Errorf("3 replicas of at most 5: ×%v with one pod each, ×%v with two", one, two)
	}
}

// If replicas of some variants have several pods, each pod of a part may be a replica.
func TestPodsOfAPartAreReplicas(t *testing.T) {
	for _, test := range []struct{ each, want []int }{
		{nil, []int{0, 1, 7}}, {[]int{1}, []int{0, 1, 7}}, {[]int{4}, []int{0, 1, 2}}, {[]int{4, 4}, []int{0, 1, 2}},
		{[]int{4, 0}, []int{0, 1, 2}}, {[]int{8, 1}, []int{0, 1, 7}},
	} {
		m := &model{}
		for _, pods := range test.each {
			m.variants = append(m.variants, &variant{reportingPods: pods})
		}
		for i, pods := range []int{0, 1, 7} {
			if got := m.replicasOf(pods); got != test.want[i] {
				t.Errorf("%d pods, %v of each replica: %d replicas, want %d", pods, test.each, got, test.want[i])
			}
		}
	}
}

// One part that is not known hides no others.
func TestOneBadHistogramHidesNoOtherParts(t *testing.T) {
	s := missing20().served(func(i int, p *fleet.LatencyPart) {
		if i == servedParts-3 {
			p.ITL = []fleet.Bucket{{Upper: 0.05, Count: math.NaN()}, {}}
		}
	})
	if factor, known := planHeadroom(Plan(s.Snapshot, Policy{}), s.Variants[0].Model); !known || factor <= 1 {
		t.Errorf("headroom ×%v, known %v", factor, known)
	}
}

// More parts than a few windows have are old, and cost nothing.
func TestOldPartsCostNothing(t *testing.T) {
	s := missing20().load(func(l *fleet.Load) {
		l.Latencies.Parts, l.Latencies.Length = nil, fleet.Duration(250*time.Millisecond)
		for i := range 100 * mostParts {
			end := epoch.Add(-time.Duration(100*mostParts-1-i) * 250 * time.Millisecond)
			l.Latencies.Parts = append(l.Latencies.Parts, fleet.LatencyPart{End: end, Requests: 100, Replicas: 3, Started: 1, ITL: itlOf(100, 0.8)})
		}
	})
	m := newView(s.Snapshot, nil, Policy{}.withDefaults()).models[0]
	if parts, starts := len(m.knownParts()), len(m.startTimes(m.latencies(), epoch)); parts != mostParts || starts > mostParts+3 {
		t.Errorf("%d parts and %d starts, want %d", parts, starts, mostParts)
	}
}
