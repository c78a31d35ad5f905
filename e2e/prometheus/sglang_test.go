package prometheus

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/engine/exposition"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// dialect is how engines are started and scraped.
type dialect struct {
	engine fleet.Engine
	flags  string // of a replica
	// of vLLM's series, the engine's own
	series func(of []simulation.Sample) []simulation.Sample
	answer func(page, accept string) (contentType, body string) // to a scrape
}

func vllm() dialect {
	return dialect{
		engine: fleet.EngineVLLM, flags: "--max-num-seqs=256",
		series: func(of []simulation.Sample) []simulation.Sample { return of }, answer: exposition.PlainText,
	}
}

func sglang() dialect {
	return dialect{engine: fleet.EngineSGLang, flags: "--max-running-requests=256", series: sglangSeries, answer: exposition.Python}
}

// sglangNames are SGLang's names for vLLM's metrics.
var sglangNames = strings.NewReplacer(
	"vllm:num_requests_running", "sglang:num_running_reqs",
	"vllm:num_requests_waiting", "sglang:num_queue_reqs",
	"vllm:kv_cache_usage_perc", "sglang:token_usage",
	"vllm:prefix_cache_hits_total", "sglang:cached_tokens_total",
	"vllm:request_prompt_tokens", "sglang:prompt_tokens_histogram",
	"vllm:request_generation_tokens", "sglang:generation_tokens_histogram",
	"vllm:", "sglang:",
)

// sglangSeries returns the series of a vLLM engine as SGLang would expose them: its counters exist
// from the first request on, and the KV cache size is a value.
func sglangSeries(of []simulation.Sample) []simulation.Sample {
	asked := slices.ContainsFunc(of, func(s simulation.Sample) bool {
		return s.Name == "vllm:time_to_first_token_seconds_count" && s.Value > 0
	})
	var series []simulation.Sample
	for _, s := range of {
		gauge := strings.HasSuffix(s.Name, "_running") || strings.HasSuffix(s.Name, "_waiting") || strings.HasSuffix(s.Name, "_perc")
		switch {
		case s.Name == "vllm:cache_config_info":
			s = cacheSize(s, of[0].Labels)
		case s.Name == "vllm:request_success_total" && !slices.Contains(s.Labels, simulation.Label{Name: "finished_reason", Value: "stop"}):
			continue
		case s.Name == "vllm:request_success_total":
			s = simulation.Sample{Name: "vllm:num_requests_total", Labels: of[0].Labels, Value: s.Value}
		case strings.HasPrefix(s.Name, "vllm:prefix_cache_queries"), strings.HasPrefix(s.Name, "vllm:request_queue_time"),
			strings.HasPrefix(s.Name, "vllm:request_prefill_time"):
			continue // it has no such metric
		}
		if gauge || asked || !strings.HasPrefix(s.Name, "vllm:") {
			s.Name = sglangNames.Replace(s.Name)
			series = append(series, s)
		}
	}
	return series
}

func cacheSize(info simulation.Sample, own []simulation.Label) simulation.Sample {
	tokens := 1.0
	for _, label := range info.Labels {
		if label.Name == "block_size" || label.Name == "num_gpu_blocks" {
			factor, err := strconv.ParseFloat(label.Value, 64)
			if err != nil {
				panic(err) // simulated engines know both
			}
			tokens *= factor
		}
	}
	return simulation.Sample{Name: "vllm:max_total_num_tokens", Labels: own, Value: tokens}
}

// underscores is the setting with which Prometheus 3 asks for the names that Prometheus 2 gets.
func underscores(t testing.TB, binary string) string {
	t.Helper()
	version, err := exec.Command(binary, "--version").CombinedOutput()
	require.NoError(t, err, string(version))
	if strings.Contains(string(version), "version 2.") {
		return ""
	}
	return "metric_name_escaping_scheme: underscores, "
}

// names returns the names of all metrics that Prometheus has stored.
func (s *scraper) names() []string {
	s.Helper()
	answer, err := http.Get(s.at.Load().String() + "/api/v1/label/__name__/values")
	require.NoError(s, err)
	defer answer.Body.Close()
	var list struct{ Data []string }
	require.NoError(s, json.NewDecoder(answer.Body).Decode(&list))
	return list.Data
}

// sglangIsScaled runs a fleet of SGLang whose names Prometheus stores with underscores.
func sglangIsScaled(t *testing.T, w *world) {
	s := w.start()
	s.awaitReady()
	s.awaitDecision(chat)
	names := w.scraper.names()
	require.Contains(t, names, "sglang_num_running_reqs")
	require.Contains(t, names, "sglang_time_to_first_token_seconds_count")
	require.False(t, slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, ":") }), "%v", names)

	follow(t, w.engines, s)
	w.rise()
	require.Equal(t, 1, w.engines.replicas(notes), "only chat has more load")
	w.engines.ask(modelOf(chat), low)
	eventually(t, "replicas fall with the load", func() bool { return w.engines.replicas(chat) == 1 })
}
