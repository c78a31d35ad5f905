package planner

import (
	"strings"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// TestMissingDataBlocksScaleDown has six replicas at a load that one could serve.
func TestMissingDataBlocksScaleDown(t *testing.T) {
	usage := func(change func(*fleet.Usage)) func(*scenario) { return func(s *scenario) { change(&s.Usages[0]) } }
	load := func(change func(*fleet.Load)) func(*scenario) { return func(s *scenario) { s.load(change) } }
	for name, change := range map[string]func(*scenario){
		"one replica has gauges and no rate":        usage(func(u *fleet.Usage) { u.FirstTokens = fleet.Reading{} }),
		"the rate of one replica is not a number":   usage(func(u *fleet.Usage) { u.FirstTokens = fleet.Reading{State: fleet.NaN} }),
		"the mean rate of one replica is not known": usage(func(u *fleet.Usage) { u.MeanRate = fleet.Reading{} }),
		"the mean rate is zero, that of now 3":      usage(func(u *fleet.Usage) { u.MeanRate = fleet.Observed(0) }),
		"the highest rate is not known":             load(func(l *fleet.Load) { l.PeakArrivals = fleet.Reading{} }),
		"the highest rate is not a number":          load(func(l *fleet.Load) { l.PeakArrivals = fleet.Reading{State: fleet.NaN} }),
		"the highest rate is zero, that of now 3":   load(func(l *fleet.Load) { l.PeakArrivals.Value = 0 }),
		"the most requests in flight not known":     load(func(l *fleet.Load) { l.PeakInFlight = fleet.Reading{} }),
		"the most requests in flight zero, now 30":  load(func(l *fleet.Load) { l.PeakInFlight.Value = 0 }),
		"the most requests in flight not known, none now": func(s *scenario) {
			for i := range s.Usages {
				s.Usages[i].Running = fleet.Observed(0)
			}
			s.load(func(l *fleet.Load) { l.PeakInFlight = fleet.Reading{} })
		},
		"the gateway's highest rate is not known": func(s *scenario) {
			s.gateway(0, 3).Loads[len(s.Loads)-1].PeakArrivals = fleet.Reading{}
		},
		"the gateway's highest rate is zero, that of now 3": func(s *scenario) {
			s.gateway(0, 3).Loads[len(s.Loads)-1].PeakArrivals = fleet.Observed(0)
		},
		"a pod of no workload serves the model": func(s *scenario) {
			stranger := s.Usages[0]
			stranger.Pod = "elsewhere-0"
			s.Usages = append(s.Usages, stranger)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := quietScenario()
			expect(t, s.decide(t)["cheap"], 1, fleet.CodeScaleDown)
			change(s)
			expect(t, s.decide(t)["cheap"], 6, fleet.CodeMetricsMissing)
		})
	}
}

// TestAReplicaOfNoWholeWindowBlocksNoScaleDown has engines that are scraped each minute: their
// window of rates is four minutes, and a mean rate begins with the first whole window.
func TestAReplicaOfNoWholeWindowBlocksNoScaleDown(t *testing.T) {
	aged := func(age time.Duration, mean fleet.Reading) *scenario {
		s := quietScenario()
		s.Workloads[0].Pods[0].ReadyAt, s.Usages[0].MeanRate = epoch.Add(-age), mean
		return s
	}
	expect(t, aged(4*time.Minute, fleet.Reading{}).decide(t)["cheap"], 1, fleet.CodeScaleDown)
	expect(t, aged(4*time.Minute, fleet.Observed(0)).decide(t)["cheap"], 6, fleet.CodeMetricsMissing)
	expect(t, aged(10*time.Minute, fleet.Reading{}).decide(t)["cheap"], 6, fleet.CodeMetricsMissing)
}

// TestAGatewayWithoutARateIsNoProofOfNoRequests has five replicas of which none is ready yet, and a
// gateway whose metrics ended some minutes ago.
func TestAGatewayWithoutARateIsNoProofOfNoRequests(t *testing.T) {
	s := newScenario(cheap(group{loading: 5, min: 1})).gateway(0, 0)
	expect(t, s.decide(t)["cheap"], 1, fleet.CodeMinReplicas)
	row := &s.Loads[len(s.Loads)-1]
	row.Arrivals, row.PeakArrivals, row.Queued = fleet.Reading{}, fleet.Reading{}, fleet.Reading{}
	expect(t, s.decide(t)["cheap"], 5, fleet.CodeMetricsMissing)
}

func quietScenario() *scenario {
	return newScenario(cheap(group{ready: 6, running: 5, kv: 0.05, rate: 0.5}))
}

func TestRequestsOfADeletedPodAreNoStrangers(t *testing.T) {
	s := quietScenario()
	s.Usages = append(s.Usages, fleet.Usage{Namespace: "shop", Pod: "cheap-gone", Model: llama, Time: epoch, FirstTokens: fleet.Observed(0.1)})
	expect(t, s.decide(t)["cheap"], 1, fleet.CodeScaleDown)
}

func TestStrangersHaveARemedy(t *testing.T) {
	s := quietScenario()
	stranger := s.Usages[0]
	stranger.Pod = "elsewhere-0"
	s.Usages = append(s.Usages, stranger)
	why := s.decide(t)["cheap"].Reason
	for _, part := range []string{"ScaledObject", "selector", "prometheus.matchers"} {
		if !strings.Contains(why.Detail(fleet.DetailRemedy), part) {
			t.Errorf("%v has no remedy with %s", why, part)
		}
	}
	if remedy := quietScenario().decide(t)["cheap"].Reason.Detail(fleet.DetailRemedy); remedy != "" {
		t.Errorf("remedy %q without a stranger", remedy)
	}
}

func TestPodsThatServeNothingAreNoStrangers(t *testing.T) {
	for name, change := range map[string]func(*fleet.Usage){
		"a pod that was just deleted":           func(u *fleet.Usage) { u.Missed = true },
		"a sleeping launcher without a replica": func(u *fleet.Usage) { u.Asleep, u.FirstTokens = true, fleet.Observed(0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := quietScenario()
			other := s.Usages[0]
			other.Pod = "elsewhere-0"
			change(&other)
			s.Usages = append(s.Usages, other)
			expect(t, s.decide(t)["cheap"], 1, fleet.CodeScaleDown)
		})
	}
}

// A pod ends between two scrapes: its last gauges are as fresh as those of the others.
func TestPodsThatEndedAShortWhileAgoAreNoStrangers(t *testing.T) {
	s := quietScenario()
	gone := s.Usages[0]
	gone.Pod = "cheap-gone"
	s.Usages = append(s.Usages, gone)
	expect(t, s.decide(t)["cheap"], 6, fleet.CodeMetricsMissing)
	s.Workloads[0].Ended = []string{"cheap-gone"}
	expect(t, s.decide(t)["cheap"], 1, fleet.CodeScaleDown)
}

func TestReplicaWithoutARateBlocksNoScaleUp(t *testing.T) {
	s := newScenario(cheap(group{ready: 2, running: 90, waiting: 20, kv: 0.9, rate: 6}))
	s.Usages[0].FirstTokens = fleet.Reading{}
	if d := s.decide(t)["cheap"]; d.Replicas <= 2 {
		t.Errorf("%d replicas, want more: %v", d.Replicas, d.Reason)
	}
}

// TestFewSilentReplicasAreNoCapacityAndCountAsDemand has twenty replicas of which two report
// nothing. One that reports serves 0.5 requests/s and could serve 7.
func TestFewSilentReplicasAreNoCapacityAndCountAsDemand(t *testing.T) {
	twenty := group{ready: 20, running: 5, kv: 0.05, rate: 0.5, max: 40}
	all := newScenario(cheap(twenty)).decide(t)["cheap"]
	s := newScenario(cheap(twenty))
	s.Usages = s.Usages[2:]
	few := s.decide(t)["cheap"]
	if few.Held || few.Replicas != all.Replicas+2 {
		t.Errorf("%d replicas, want the %d of the demand and the 2 silent ones: %v", few.Replicas, all.Replicas, few.Reason)
	}
	s.Usages = s.Usages[1:]
	expect(t, s.decide(t)["cheap"], 20, fleet.CodeMetricsMissing)
}

// TestSilentReplicasCountInTheHighestDemand has nine replicas that served 6 requests/s each in the
// peak window, and one that was silent throughout.
func TestSilentReplicasCountInTheHighestDemand(t *testing.T) {
	ten := group{ready: 10, running: 5, kv: 0.05, rate: 0.5, max: 40}
	peaked := func(rate float64) *scenario {
		return newScenario(cheap(ten)).load(func(l *fleet.Load) { l.PeakArrivals = fleet.Observed(rate) })
	}
	want := peaked(40).decide(t)["cheap"].Replicas
	s := peaked(36)
	s.Usages = s.Usages[1:]
	if d := s.decide(t)["cheap"]; d.Held || d.Replicas != want+1 {
		t.Errorf("%d replicas, want the %d of ten times the mean of the peak and the silent one: %v", d.Replicas, want, d.Reason)
	}
}

// TestLongSilentReplicasHaveAnEvent has the same fleet before and after the rows of the silent pod
// have left the window.
func TestLongSilentReplicasHaveAnEvent(t *testing.T) {
	plan := func(change func(*scenario)) fleet.Plan {
		s := newScenario(cheap(group{ready: 20, running: 60, kv: 0.6, rate: 5, max: 40}))
		change(s)
		return Plan(s.Snapshot, Policy{})
	}
	lately := plan(func(s *scenario) {
		s.Usages[0] = fleet.Usage{Namespace: "shop", Pod: s.Usages[0].Pod, Model: llama, Time: epoch}
	})
	long := plan(func(s *scenario) { s.Usages = s.Usages[1:] })
	silent := func(p fleet.Plan) string { return p.Decisions[0].Reason.Detail(fleet.DetailSilent) }
	if silent(lately) != "" || silent(long) == "" {
		t.Errorf("details %q and %q, want one after ten minutes", silent(lately), silent(long))
	}
	warnings := 0
	for _, n := range Notices(lately, long) {
		if n.Warning && n.Code == fleet.CodeMetricsMissing {
			warnings++
		}
	}
	if warnings != 1 || len(Notices(long, long)) != 0 {
		t.Errorf("%d events, want one when ten minutes are over and none afterwards", warnings)
	}
}

// TestNameWithoutReplicasBlocksNoScaleDown has a second name of the model, whose variant was scaled
// to zero: its row stays for the idle window, and knows no peak.
func TestNameWithoutReplicasBlocksNoScaleDown(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *scenario, row *fleet.Load)
		want   int
		code   fleet.Code
	}{
		"nothing reports":                 {func(*scenario, *fleet.Load) {}, 1, fleet.CodeScaleDown},
		"a pod that is gone had a row":    {func(s *scenario, _ *fleet.Load) { s.usage("spare-0", nil) }, 1, fleet.CodeScaleDown},
		"a pod that is gone had requests": {func(s *scenario, _ *fleet.Load) { s.usage("spare-0", serves) }, 6, fleet.CodeMetricsMissing},
		"its peak is not a number": {func(_ *scenario, row *fleet.Load) {
			row.PeakArrivals = fleet.Reading{State: fleet.NaN}
		}, 6, fleet.CodeMetricsMissing},
		"it was used in the peak window": {func(_ *scenario, row *fleet.Load) {
			row.PeakInFlight = fleet.Observed(1)
		}, 6, fleet.CodeMetricsMissing},
		"a replica exists": {func(s *scenario, _ *fleet.Load) { s.Workloads[1].Replicas = 1 }, 6, fleet.CodeMetricsMissing},
		"a pod terminates": {func(s *scenario, _ *fleet.Load) {
			s.Workloads[1].Pods = []fleet.Pod{{Name: "spare-0", Terminating: true}}
		}, 6, fleet.CodeMetricsMissing},
		"its workload is not seen": {func(s *scenario, _ *fleet.Load) { s.Workloads = s.Workloads[:1] }, 6, fleet.CodeMetricsMissing},
	} {
		t.Run(name, func(t *testing.T) {
			s := quietScenario()
			s.add(group{name: "spare", cost: 2, max: 6, variant: func(v *fleet.Variant) { v.ServedName = "spare" }})
			row := fleet.Load{Namespace: "shop", Model: "spare", Source: fleet.SourceEngine, Time: epoch, LastActive: epoch.Add(-8 * time.Minute)}
			c.change(s, &row)
			s.Loads = append(s.Loads, row)
			expect(t, s.decide(t)["cheap"], c.want, c.code)
		})
	}
}

// usage adds a row of the name spare.
func (s *scenario) usage(pod string, change func(*fleet.Usage)) {
	row := fleet.Usage{Namespace: "shop", Pod: pod, Model: "spare", Time: epoch}
	if change != nil {
		change(&row)
	}
	s.Usages = append(s.Usages, row)
}

func serves(row *fleet.Usage) { row.FirstTokens = fleet.Observed(0.1) }

// Of five ready replicas two are silent. Which of them a Deployment stops is not known.
func TestSilentReplicasMayBeTheOnesThatStay(t *testing.T) {
	v := &variant{Variant: &fleet.Variant{}, podCounts: podCounts{ready: 3, silent: 2}, now: 5}
	v.Range.Max = 9
	if n := v.readyAfter(4); n != 2 {
		t.Errorf("%d of four replicas report for certain, want 2", n)
	}
	z := &sizedModel{candidates: []candidate{{variant: v}}}
	for planned, want := range map[int]int{2: 4, 4: 6} {
		if n := z.number(0, []outcome{{planned: planned}}); n != want {
			t.Errorf("%d replicas for %d that report, want %d", n, planned, want)
		}
	}
}

// A StatefulSet stops the highest ordinals: the silent replica 0 stays.
func TestSilentReplicaOfALowerOrdinalStays(t *testing.T) {
	v := &variant{Variant: &fleet.Variant{}, workload: &fleet.Workload{}, podCounts: podCounts{ready: 2, silent: 1}, silentPods: []string{"chat-0"}}
	v.Target.Kind = "StatefulSet"
	for _, name := range []string{"chat-0", "chat-1", "chat-2"} {
		v.workload.Pods = append(v.workload.Pods, fleet.Pod{Name: name, Ready: true})
	}
	if n := v.readyAfter(2); n != 1 {
		t.Errorf("%d of two replicas report, want 1", n)
	}
}
