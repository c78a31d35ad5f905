package simulation

import (
	"slices"
	"strconv"
	"strings"

	"github.com/wva-project/wva/fleet"
)

// Target is one endpoint that is scraped.
type Target struct {
	Name      string // namespace/pod, unique among targets
	Namespace string // a scraper adds the namespace and the pod as labels
	Pod       string
	Samples   []Sample // the series of one name follow each other
}

// Sample is one sample of a scrape.
type Sample struct {
	Name   string
	Labels []Label // shared: not to be written to
	Value  float64
}

// Label is one label of a series.
type Label struct{ Name, Value string }

// gatewayPod is the name of the pod of a namespace's gateway.
const gatewayPod = "inference-gateway"

// Endpoint is one endpoint that can be scraped.
type Endpoint struct {
	Name, Namespace, Pod string // as in Target
	Gateway              bool   // and no engine

	read func() []Sample
}

// Scrape returns the samples that a scrape would read now.
func (e Endpoint) Scrape() Target {
	return Target{Name: e.Name, Namespace: e.Namespace, Pod: e.Pod, Samples: e.read()}
}

// Series returns the endpoints with the samples that a scrape would read now.
func (f *Fleet) Series() []Target {
	var targets []Target
	for _, e := range f.Endpoints() {
		targets = append(targets, e.Scrape())
	}
	return targets
}

// Endpoints returns the endpoints of this instant. There is one for each replica that is ready or
// draining, sorted by variant and age, then one for each namespace's gateway. A replica that loads
// answers no scrape.
func (f *Fleet) Endpoints() []Endpoint {
	var endpoints []Endpoint
	for _, v := range f.variants {
		for _, p := range v.pods {
			if p.state == ready || p.state == draining {
				endpoints = append(endpoints, Endpoint{Name: p.endpoint, Namespace: v.Target.Namespace, Pod: p.name, read: p.samples})
			}
		}
	}
	for from := 0; from < len(f.gateways); {
		namespace, to := f.gateways[from].ID.Namespace, from
		for to < len(f.gateways) && f.gateways[to].ID.Namespace == namespace {
			to++
		}
		gateways := f.gateways[from:to]
		endpoints = append(endpoints, Endpoint{
			Name: namespace + "/" + gatewayPod, Namespace: namespace, Pod: gatewayPod, Gateway: true,
			read: func() []Sample { return gatewaySamples(gateways) },
		})
		from = to
	}
	return endpoints
}

// gatewaySamples returns the series of an endpoint picker. As with a real one, those of a model
// exist only after the first request for it.
func gatewaySamples(gateways []*gateway) []Sample {
	var requests, running, queued, bytes []Sample
	for _, g := range gateways {
		if g.arrived == 0 {
			continue
		}
		model := []Label{{"model_name", g.ID.Name}}
		both := with(model, Label{"target_model_name", g.served})
		flow := with(both, Label{"fairness_id", "default-flow"}, Label{"inference_pool", poolName(g.ID)}, Label{"priority", "0"})
		inFlight := g.arrived - g.answered - g.lost - len(g.queue)
		requests = append(requests, Sample{"inference_objective_request_total", both, float64(g.arrived)})
		running = append(running, Sample{"inference_objective_running_requests", model, float64(inFlight)})
		queued = append(queued, Sample{"inference_extension_flow_control_queue_size", flow, float64(len(g.queue))})
		bytes = append(bytes, Sample{"inference_extension_flow_control_queue_bytes", flow, g.queuedBytes()})
	}
	return slices.Concat(requests, running, queued, bytes)
}

// with returns the labels and more of them.
func with(labels []Label, more ...Label) []Label { return slices.Concat(labels, more) }

// queuedBytes estimates the size of the queued requests' bodies, at 4 bytes per token.
func (g *gateway) queuedBytes() float64 {
	tokens := 0
	for _, s := range g.queue {
		tokens += s.Prompt
	}
	return float64(4 * tokens)
}

// poolName returns a Kubernetes name for the pool of a model.
func poolName(id fleet.ModelID) string {
	name := strings.ToLower(id.Name[strings.LastIndexByte(id.Name, '/')+1:])
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, name), "-.")
}

// scrapeLabels are the labels of an engine's series. They never change, so that scrapes share them.
type scrapeLabels struct {
	engine, stop, length, abort, cacheConfig []Label
	ttft, itl, requestTime, lengths          [][]Label // of the buckets
}

// newScrapeLabels returns the labels as vLLM has them: cache_config_info has no model.
func newScrapeLabels(p *pod) scrapeLabels {
	engine := []Label{{"engine", "0"}, {"model_name", p.variant.ServedName}}
	reason := func(reason string) []Label { return with(engine, Label{"finished_reason", reason}) }
	m := &p.engine.metrics
	return scrapeLabels{
		engine: engine,
		stop:   reason("stop"), length: reason("length"), abort: reason("abort"),
		cacheConfig: []Label{
			{"block_size", strconv.Itoa(blockSize)},
			{"cache_dtype", "auto"},
			{"enable_prefix_caching", "True"},
			{"engine", "0"},
			{"gpu_memory_utilization", "0.9"},
			{"num_cpu_blocks", "None"},
			{"num_gpu_blocks", strconv.Itoa(p.engine.blocks)},
			{"sliding_window", "None"},
		},
		ttft: bucketLabels(engine, m.ttft.bounds), itl: bucketLabels(engine, m.itl.bounds),
		requestTime: bucketLabels(engine, m.queueTime.bounds), lengths: bucketLabels(engine, m.promptLengths.bounds),
	}
}

func bucketLabels(engine []Label, bounds []float64) [][]Label {
	labels := make([][]Label, 0, len(bounds)+1)
	for _, bound := range bounds {
		labels = append(labels, with(engine, Label{"le", boundText(bound)}))
	}
	return append(labels, with(engine, Label{"le", "+Inf"}))
}

// boundText formats a bound as Python's client does: whole numbers have a point too.
func boundText(bound float64) string {
	text := strconv.FormatFloat(bound, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// samples returns the samples of the replica's engine.
func (p *pod) samples() []Sample {
	if p.scrape.engine == nil {
		p.scrape = newScrapeLabels(p)
	}
	e, m, l := &p.engine, &p.engine.metrics, &p.scrape
	s := make([]Sample, 0, 192)
	gauge := func(name string, value float64) { s = append(s, Sample{name, l.engine, value}) }
	count := func(name string, value int) { s = append(s, Sample{name, l.engine, float64(value)}) }
	count("vllm:num_requests_running", len(e.running))
	count("vllm:num_requests_waiting", len(e.waiting))
	gauge("vllm:kv_cache_usage_perc", e.kvUsage())
	count("vllm:num_preemptions_total", m.preemptions)
	count("vllm:prefix_cache_queries_total", m.prefixQueries)
	count("vllm:prefix_cache_hits_total", m.prefixHits)
	count("vllm:prompt_tokens_total", m.promptTokens)
	count("vllm:generation_tokens_total", m.generationTokens)
	s = append(s,
		Sample{"vllm:request_success_total", l.stop, float64(m.served)},
		Sample{"vllm:request_success_total", l.length, 0},
		Sample{"vllm:request_success_total", l.abort, float64(m.aborted)},
		Sample{"vllm:cache_config_info", l.cacheConfig, 1})
	s = m.ttft.append(s, histogramNames("vllm:time_to_first_token_seconds"), l.ttft)
	s = m.itl.append(s, histogramNames("vllm:inter_token_latency_seconds"), l.itl)
	s = m.requestITL.append(s, histogramNames("vllm:request_time_per_output_token_seconds"), l.itl)
	s = m.queueTime.append(s, histogramNames("vllm:request_queue_time_seconds"), l.requestTime)
	s = m.prefillTime.append(s, histogramNames("vllm:request_prefill_time_seconds"), l.requestTime)
	s = m.promptLengths.append(s, histogramNames("vllm:request_prompt_tokens"), l.lengths)
	return m.outputLengths.append(s, histogramNames("vllm:request_generation_tokens"), l.lengths)
}

// histogramName are the names of a histogram's series.
type histogramName struct{ bucket, count, sum string }

func histogramNames(base string) histogramName {
	return histogramName{bucket: base + "_bucket", count: base + "_count", sum: base + "_sum"}
}

// append adds the histogram's samples: cumulative buckets, then count and sum.
func (h *histogram) append(s []Sample, name histogramName, buckets [][]Label) []Sample {
	total := 0
	for i, n := range h.counts {
		total += n
		s = append(s, Sample{name.bucket, buckets[i], float64(total)})
	}
	engine := buckets[0][:2:2]
	return append(s, Sample{name.count, engine, float64(total)}, Sample{name.sum, engine, h.sum})
}
