package play

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// variant is an engine's Deployment with its ready pods, sorted.
type variant struct {
	namespace, name string
	accelerator     fleet.Accelerator
	sequences       int // max_num_seqs
	pods            []string
}

// served is one model: its engines and gateway, in wall time.
type served struct {
	model    fleet.ModelID
	variants []string // names, sorted: the simulation begins anew if they change
	fleet    *simulation.Fleet
	began    time.Time
	offered  float64 // the end of the arrivals that were drawn, in seconds since then
	seed     uint64
	pods     map[string]*playedPod
}

// playedPod is a pod and the simulated replica that it shows. The counters of a pod begin at 0,
// also if it shows another replica from then on: Prometheus takes that for a restart of the engine.
type playedPod struct {
	replica string
	base    map[string]float64
}

// Lengths of requests, in tokens.
var (
	prompts = simulation.Lengths{Mean: 1000, P99: 4000}
	outputs = simulation.Lengths{Mean: 200, P99: 800}
)

// advance runs the engines up to now, with the pods that the cluster has and a rate of arrivals.
func (s *served) advance(now time.Time, variants []variant, perSecond float64) {
	slices.SortFunc(variants, func(a, b variant) int { return strings.Compare(a.name, b.name) })
	var names []string
	for _, v := range variants {
		names = append(names, v.name)
	}
	if !slices.Equal(names, s.variants) {
		if err := s.begin(now, variants); err != nil {
			return // the names of two Deployments in one namespace differ
		}
		s.variants = names
	}
	for _, v := range variants {
		_ = s.fleet.Scale(s.id(v.name), len(v.pods)) // the variant is known
	}
	s.offer(now, perSecond)
	s.fleet.Advance(now.Sub(s.began).Seconds())
	s.match(variants)
}

func (s *served) id(name string) fleet.VariantID {
	return fleet.VariantID{Namespace: s.model.Namespace, Name: name}
}

// begin makes a new simulation.
func (s *served) begin(now time.Time, variants []variant) error {
	spec := simulation.FleetSpec{Seed: 1, Epoch: now}
	for _, v := range variants {
		// acceleratorOf returns known ones only.
		profile, _ := simulation.ProfileOf("Llama-3.1-8B", v.accelerator)
		spec.Variants = append(spec.Variants, simulation.VariantSpec{
			ID: s.id(v.name), Model: s.model, Target: fleet.TargetID{Namespace: v.namespace, APIVersion: "apps/v1", Kind: "Deployment", Name: v.name},
			Profile: profile, MaxSequences: v.sequences, Startup: 0.001, // the pod is ready
		})
	}
	made, err := simulation.NewFleet(spec)
	if err != nil {
		return err
	}
	s.fleet, s.began, s.offered, s.pods = made, now, 0, map[string]*playedPod{}
	return nil
}

// offer draws the arrivals since the last call. They are in the past of the wall clock and in the
// future of the simulation.
func (s *served) offer(now time.Time, perSecond float64) {
	until := now.Sub(s.began).Seconds()
	from, span := s.offered, until-s.offered
	s.offered = until
	if perSecond == 0 || span <= 0 {
		return
	}
	s.seed++
	requests, err := simulation.Generate(simulation.Stream{
		Model: s.model, Rate: func(float64) float64 { return perSecond }, Prompt: prompts, Output: outputs, Until: span, Seed: s.seed,
	})
	if err != nil {
		return // the stream is valid
	}
	for i := range requests {
		requests[i].Arrival += from
	}
	_ = s.fleet.Offer(requests) // they are sorted, and later than all before
}

// match gives each pod a simulated replica. A replica that still drains after its pod has gone is
// shown by none.
func (s *served) match(variants []variant) {
	free := map[string]map[string]bool{} // replicas without a pod, by variant
	for _, w := range s.fleet.Workloads() {
		free[w.ID.Name] = map[string]bool{}
		for _, p := range w.Pods {
			if p.Ready && !p.Terminating {
				free[w.ID.Name][p.Name] = true
			}
		}
	}
	current := map[string]bool{}
	for _, v := range variants {
		for _, name := range v.pods {
			current[name] = true
			if pod := s.pods[name]; pod != nil && free[v.name][pod.replica] {
				delete(free[v.name], pod.replica)
			} else {
				delete(s.pods, name)
			}
		}
	}
	for name := range s.pods {
		if !current[name] {
			delete(s.pods, name)
		}
	}
	for _, v := range variants {
		for _, name := range v.pods {
			if s.pods[name] != nil {
				continue
			}
			if replicas := slices.Sorted(maps.Keys(free[v.name])); len(replicas) > 0 {
				s.pods[name] = &playedPod{replica: replicas[0], base: s.counters(replicas[0])}
				delete(free[v.name], replicas[0])
			}
		}
	}
}

// samples returns the series of one endpoint of the simulation.
func (s *served) samples(pod string) []simulation.Sample {
	for _, target := range s.fleet.Series() {
		if target.Pod == pod {
			return target.Samples
		}
	}
	return nil
}

// counters returns the counters of a replica by their series.
func (s *served) counters(replica string) map[string]float64 {
	values := map[string]float64{}
	for _, sample := range s.samples(replica) {
		if isCounter(sample.Name) {
			values[series(sample)] = sample.Value
		}
	}
	return values
}

func isCounter(name string) bool {
	return slices.ContainsFunc([]string{"_total", "_count", "_sum", "_bucket"}, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// writeEngine writes the metrics of a pod.
func (s *served) writeEngine(text *bytes.Buffer, name string) {
	pod := s.pods[name]
	if pod == nil {
		return
	}
	for _, sample := range s.samples(pod.replica) {
		key := series(sample)
		write(text, key, sample.Value-pod.base[key])
	}
}

// gatewayPod is the name under which the simulation shows the gateway.
const gatewayPod = "inference-gateway"

// writeGateway writes the metrics of the model's gateway.
func (s *served) writeGateway(text *bytes.Buffer) {
	if s.fleet == nil {
		return
	}
	for _, sample := range s.samples(gatewayPod) {
		write(text, series(sample), sample.Value)
	}
}

func write(text *bytes.Buffer, series string, value float64) {
	fmt.Fprintf(text, "%s %s\n", series, strconv.FormatFloat(value, 'g', -1, 64))
}

// series formats a series as the text format does.
func series(sample simulation.Sample) string {
	var labels []string
	for _, label := range sample.Labels {
		labels = append(labels, label.Name+"="+strconv.Quote(label.Value))
	}
	return sample.Name + "{" + strings.Join(labels, ",") + "}"
}
