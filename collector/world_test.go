package collector_test

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

// start is a multiple of every step that the tests use.
var start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

const (
	team     = "team"
	llama    = "meta-llama/Llama-3.1-8B-Instruct"
	interval = 15
)

// report is the state that one engine exposes at one instant. Counters are totals since its start.
type report struct {
	running, waiting, kv    float64
	firstTokens, finished   float64
	prompt, output          float64 // tokens, totals
	tokenSeconds, tokenGaps float64 // of the histogram of inter-token latency
	prefillSeconds          float64
	prefixQueries           float64 // tokens
	prefixHits              float64
}

// vllm returns the engine's series as vLLM and Prometheus' relabeling show them.
func vllm(pod string, index int, e report) []promstore.Sample {
	own := promstore.Labels("namespace", team, "pod", pod, "job", "vllm", "model_name", llama, "engine", strconv.Itoa(index))
	config := promstore.Labels("namespace", team, "pod", pod, "job", "vllm", "engine", strconv.Itoa(index),
		"block_size", "16", "num_gpu_blocks", "1000", "cache_dtype", "auto")
	series := []promstore.Sample{
		{Name: "vllm:num_requests_running", Labels: own, Value: e.running},
		{Name: "vllm:num_requests_waiting", Labels: own, Value: e.waiting},
		{Name: "vllm:kv_cache_usage_perc", Labels: own, Value: e.kv},
		{Name: "vllm:cache_config_info", Labels: config, Value: 1},
		{Name: "vllm:prompt_tokens_total", Labels: own, Value: e.prompt},
		{Name: "vllm:request_prompt_tokens_sum", Labels: own, Value: e.prompt},
		{Name: "vllm:request_prompt_tokens_count", Labels: own, Value: e.finished},
		{Name: "vllm:request_generation_tokens_sum", Labels: own, Value: e.output},
		{Name: "vllm:request_generation_tokens_count", Labels: own, Value: e.finished},
		{Name: "vllm:prefix_cache_queries_total", Labels: own, Value: e.prefixQueries},
		{Name: "vllm:prefix_cache_hits_total", Labels: own, Value: e.prefixHits},
		{Name: "vllm:request_prefill_time_seconds_sum", Labels: own, Value: e.prefillSeconds},
		{Name: "vllm:request_prefill_time_seconds_count", Labels: own, Value: e.finished},
		{Name: "vllm:inter_token_latency_seconds_sum", Labels: own, Value: e.tokenSeconds},
		{Name: "vllm:inter_token_latency_seconds_count", Labels: own, Value: e.tokenGaps},
		{Name: "vllm:time_to_first_token_seconds_sum", Labels: own, Value: e.firstTokens * 0.3},
		{Name: "vllm:time_to_first_token_seconds_count", Labels: own, Value: e.firstTokens},
	}
	for _, bucket := range []struct {
		bound string
		share float64
	}{{"0.1", 0}, {"0.25", 0.5}, {"0.5", 1}, {"+Inf", 1}} {
		series = append(series, promstore.Sample{Name: "vllm:time_to_first_token_seconds_bucket",
			Labels: with(own, "le", bucket.bound), Value: e.firstTokens * bucket.share})
	}
	for _, reason := range []string{"stop", "length", "abort"} {
		finished := 0.0
		if reason == "stop" {
			finished = e.finished
		}
		series = append(series, promstore.Sample{Name: "vllm:request_success_total", Labels: with(own, "finished_reason", reason), Value: finished})
	}
	return series
}

// histogramOf returns the buckets of a histogram of a pod, with the counts up to their bounds. Its
// count is in vllm.
func histogramOf(pod, metric string, bounds, below []float64) []promstore.Sample {
	own := promstore.Labels("namespace", team, "pod", pod, "job", "vllm", "model_name", llama, "engine", "0")
	var series []promstore.Sample
	for i, bound := range bounds {
		text := "+Inf"
		if !math.IsInf(bound, 1) {
			text = strconv.FormatFloat(bound, 'f', 1, 64)
		}
		series = append(series, promstore.Sample{Name: metric + "_bucket", Labels: with(own, "le", text), Value: below[i]})
	}
	return series
}

// sglang returns the engine's series as SGLang shows them: counters are there from the first
// request on.
func sglang(pod string, e report) []promstore.Sample {
	own := promstore.Labels("namespace", team, "pod", pod, "job", "sglang", "model_name", llama, "engine_type", "unified", "tp_rank", "0")
	series := []promstore.Sample{
		{Name: "sglang:num_running_reqs", Labels: own, Value: e.running},
		{Name: "sglang:num_queue_reqs", Labels: own, Value: e.waiting},
		{Name: "sglang:token_usage", Labels: own, Value: e.kv},
		{Name: "sglang:max_total_num_tokens", Labels: own, Value: 32000},
	}
	if e.firstTokens == 0 {
		return series
	}
	return append(series,
		promstore.Sample{Name: "sglang:time_to_first_token_seconds_sum", Labels: own, Value: e.firstTokens * 0.3},
		promstore.Sample{Name: "sglang:time_to_first_token_seconds_count", Labels: own, Value: e.firstTokens},
		promstore.Sample{Name: "sglang:time_to_first_token_seconds_bucket", Labels: with(own, "le", "0.4"), Value: e.firstTokens},
		promstore.Sample{Name: "sglang:time_to_first_token_seconds_bucket", Labels: with(own, "le", "+Inf"), Value: e.firstTokens},
		promstore.Sample{Name: "sglang:inter_token_latency_seconds_sum", Labels: own, Value: e.tokenSeconds},
		promstore.Sample{Name: "sglang:inter_token_latency_seconds_count", Labels: own, Value: e.tokenGaps},
		promstore.Sample{Name: "sglang:prompt_tokens_total", Labels: own, Value: e.prompt},
		promstore.Sample{Name: "sglang:generation_tokens_total", Labels: own, Value: e.output},
		promstore.Sample{Name: "sglang:num_requests_total", Labels: own, Value: e.finished},
	)
}

func with(labels []promstore.Label, more ...string) []promstore.Label {
	return append(append([]promstore.Label(nil), labels...), promstore.Labels(more...)...)
}

// world is a Prometheus with a collector on it that counts its requests.
type world struct {
	testing.TB
	store     *promstore.Store
	collector *collector.Collector
	requests  atomic.Int64
	last      int // the second of the last scrape
	young     map[collector.Pod]time.Time
}

// began makes a pod one that began to serve at a second.
func (w *world) began(pod string, second int) {
	if w.young == nil {
		w.young = make(map[collector.Pod]time.Time)
	}
	w.young[collector.Pod{Namespace: team, Name: pod}] = at(second)
}

func newWorld(t testing.TB, change ...func(*collector.Options)) *world {
	t.Helper()
	store, err := promstore.New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	w := &world{TB: t, store: store}
	options := collector.Options{Address: "http://prometheus.invalid", RoundTripper: w, Lag: -1, Logger: quiet(), Timeout: 14 * time.Second}
	for _, f := range change {
		f(&options)
	}
	w.collector, err = collector.New(options)
	require.NoError(t, err)
	return w
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	w.requests.Add(1)
	return w.store.Transport().RoundTrip(r)
}

// scrape lets Prometheus scrape a target at a second; nothing scraped is a target that does not
// answer.
func (w *world) scrape(target string, second int, samples ...promstore.Sample) {
	w.Helper()
	require.NoError(w, w.store.Scrape(target, at(second), samples))
	w.last = max(w.last, second)
}

// scrapes scrapes a pod every fifteen seconds from the first second to the last, both included.
func (w *world) scrapes(pod string, first, last int, expose func(second int) []promstore.Sample) {
	w.Helper()
	for second := first; second <= last; second += interval {
		w.scrape(pod, second, expose(second)...)
	}
}

// steady is an engine that gets first tokens at a rate, per second, since the second it was born.
func steady(pod string, rate float64) func(second int) []promstore.Sample {
	return func(second int) []promstore.Sample {
		done := rate * float64(second)
		return vllm(pod, 0, report{running: 4, kv: 0.25, firstTokens: done, finished: done,
			prompt: done * 1000, output: done * 200, tokenSeconds: done * 200 * 0.02, tokenGaps: done * 200})
	}
}

func (w *world) collect() collector.Observation {
	w.Helper()
	observation := w.collector.Collect(context.Background(), at(w.last), collector.Windows{Began: w.young})
	require.Empty(w, observation.Missing)
	return observation
}

// usage returns the one row of a pod.
func (w *world) usage(pod string) fleet.Usage {
	w.Helper()
	rows := usagesOf(w.collect(), pod)
	require.Len(w, rows, 1)
	return rows[0]
}

func usagesOf(o collector.Observation, pod string) []fleet.Usage {
	var rows []fleet.Usage
	for _, usage := range o.Usages {
		if usage.Pod == pod {
			rows = append(rows, usage)
		}
	}
	return rows
}

// load returns the one row of a source.
func (w *world) load(source fleet.LoadSource) fleet.Load {
	w.Helper()
	return loadOf(w, w.collect(), source)
}

func loadOf(t testing.TB, o collector.Observation, source fleet.LoadSource) fleet.Load {
	t.Helper()
	var rows []fleet.Load
	for _, load := range o.Loads {
		if load.Source == source {
			rows = append(rows, load)
		}
	}
	require.Len(t, rows, 1)
	return rows[0]
}

// present asserts a value that is Present.
func present(t testing.TB, want float64, got fleet.Reading) {
	t.Helper()
	require.Equal(t, fleet.Present, got.State, "%+v", got)
	require.InDelta(t, want, got.Value, 1e-6+want*1e-3)
}
