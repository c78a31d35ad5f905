package app

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/wva-project/wva/demo/promstore"
)

// engineLoad is the report of the engines of a workload.
type engineLoad struct {
	model     string  // the label model_name
	rate      float64 // requests per second of one pod
	waiting   float64
	forged    *forgery // of a hostile tenant
	unwatched bool     // Prometheus does not scrape them
}

// forgery is series that no engine would expose.
type forgery struct {
	value   float64           // of every gauge, if set
	set     bool              // value counts
	growth  float64           // of every counter, per second, if not zero
	resets  bool              // counters go back to zero at every other scrape
	labels  map[string]string // further labels of every series
	engines int               // series that differ in the label engine
	without string            // series whose name has this part are missing
	twice   string            // a label with two values, so that all series are there twice
}

// counters are the totals of one pod.
type counters struct{ done, scrapes float64 }

// arenaCapacity is the requests per second that one replica of the victim can serve: its KV cache
// is full at 92 % then.
const arenaCapacity = 12.0

// vllmSeries returns the series of a pod, and moves its counters on by one step.
func vllmSeries(p *arenaPod, load engineLoad) []promstore.Sample {
	c, share := &p.counters, load.rate/arenaCapacity
	c.scrapes++
	c.done += load.rate * arenaStep.Seconds()
	own := promstore.Labels("namespace", p.namespace, "pod", p.name, "model_name", load.model, "engine", "0")
	total := c.done
	series := []promstore.Sample{
		{Name: "vllm:num_requests_running", Labels: own, Value: math.Round(100 * share)},
		{Name: "vllm:num_requests_waiting", Labels: own, Value: load.waiting},
		{Name: "vllm:kv_cache_usage_perc", Labels: own, Value: 0.92 * share},
		{Name: "vllm:cache_config_info", Labels: with(own[:2], "engine", "0", "block_size", "16", "num_gpu_blocks", "12500"), Value: 1},
		{Name: "vllm:time_to_first_token_seconds_count", Labels: own, Value: total},
		{Name: "vllm:time_to_first_token_seconds_sum", Labels: own, Value: total * 0.2},
		{Name: "vllm:time_to_first_token_seconds_bucket", Labels: with(own, "le", "0.5"), Value: total},
		{Name: "vllm:time_to_first_token_seconds_bucket", Labels: with(own, "le", "+Inf"), Value: total},
		{Name: "vllm:inter_token_latency_seconds_count", Labels: own, Value: 200 * total},
		{Name: "vllm:inter_token_latency_seconds_sum", Labels: own, Value: 4 * total},
		{Name: "vllm:request_prompt_tokens_count", Labels: own, Value: total},
		{Name: "vllm:request_prompt_tokens_sum", Labels: own, Value: 1000 * total},
		{Name: "vllm:request_generation_tokens_count", Labels: own, Value: total},
		{Name: "vllm:request_generation_tokens_sum", Labels: own, Value: 200 * total},
		{Name: "vllm:prompt_tokens_total", Labels: own, Value: 1000 * total},
		{Name: "vllm:generation_tokens_total", Labels: own, Value: 200 * total},
		{Name: "vllm:request_success_total", Labels: with(own, "finished_reason", "stop"), Value: total},
	}
	if load.forged == nil {
		return series
	}
	return load.forged.apply(series, c.scrapes)
}

// apply returns the series with the lies in them.
func (f *forgery) apply(series []promstore.Sample, scrapes float64) []promstore.Sample {
	var lies []promstore.Sample
	for _, s := range series {
		if f.without != "" && strings.Contains(s.Name, f.without) {
			continue
		}
		counter := strings.HasSuffix(s.Name, "_total") || strings.HasSuffix(s.Name, "_count") || strings.HasSuffix(s.Name, "_sum") || strings.HasSuffix(s.Name, "_bucket")
		switch {
		case counter && f.resets && math.Mod(scrapes, 2) == 0:
			s.Value = 0
		case counter && f.growth != 0:
			s.Value = f.growth * scrapes * arenaStep.Seconds()
		case !counter && f.set:
			s.Value = f.value
		}
		for name, value := range f.labels {
			s.Labels = with(s.Labels, name, value)
		}
		for i := range max(1, f.engines) {
			one := s
			if i > 0 {
				one.Labels = with(s.Labels, "wva_engine_"+strconv.Itoa(i%3), strconv.Itoa(i))
			}
			if f.twice != "" {
				lies = append(lies, promstore.Sample{Name: one.Name, Labels: with(one.Labels, f.twice, "other"), Value: one.Value})
				one.Labels = with(one.Labels, f.twice, "one")
			}
			lies = append(lies, one)
		}
	}
	return lies
}

// gateway is a pod that says that it is the gateway of some models.
type gateway struct {
	namespace, name string
	models          []string
	rate, queue     float64
	labels          map[string]string
	twice           string // a label with two values
	total           float64
	gone            bool
}

// series returns those of a gateway, under the names of both generations, and moves its counters
// on.
func (g *gateway) series() []promstore.Sample {
	g.total += g.rate * arenaStep.Seconds()
	var series []promstore.Sample
	for _, model := range g.models {
		own := promstore.Labels("namespace", g.namespace, "pod", g.name, "model_name", model, "target_model_name", model)
		for name, value := range g.labels {
			own = with(own, name, value)
		}
		for _, s := range []promstore.Sample{
			{Name: "inference_objective_request_total", Labels: own, Value: g.total},
			{Name: "inference_extension_flow_control_queue_size", Labels: own, Value: g.queue},
			{Name: "llm_d_epp_request_total", Labels: own, Value: g.total},
		} {
			if g.twice != "" {
				series = append(series, promstore.Sample{Name: s.Name, Labels: with(s.Labels, g.twice, "other"), Value: s.Value})
				s.Labels = with(s.Labels, g.twice, "one")
			}
			series = append(series, s)
		}
	}
	return series
}

func with(labels []promstore.Label, more ...string) []promstore.Label {
	all := append([]promstore.Label(nil), labels...)
	for _, label := range promstore.Labels(more...) {
		replaced := false
		for i := range all {
			if all[i].Name == label.Name {
				all[i], replaced = label, true
			}
		}
		if !replaced {
			all = append(all, label)
		}
	}
	return all
}

// expositionOf returns the series as a page of metrics, for reports.
func expositionOf(series []promstore.Sample) string {
	var b strings.Builder
	for _, s := range series {
		labels := make([]string, len(s.Labels))
		for i, label := range s.Labels {
			labels[i] = fmt.Sprintf("%s=%q", label.Name, label.Value)
		}
		fmt.Fprintf(&b, "%s{%s} %v\n", s.Name, strings.Join(labels, ","), s.Value)
	}
	return b.String()
}

// scrape adds the samples of a target to the stores that know it.
func scrape(stores []*promstore.Store, target string, at time.Time, series []promstore.Sample) error {
	for _, store := range stores {
		if err := store.Scrape(target, at, series); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
	}
	return nil
}
