package simulation

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// value returns the sample with the given name and labels (as name=value), and whether there is
// one.
func value(target Target, name string, labels ...string) (float64, bool) {
	for _, s := range target.Samples {
		if s.Name == name && hasLabels(s, labels) {
			return s.Value, true
		}
	}
	return 0, false
}

func hasLabels(s Sample, labels []string) bool {
	for _, label := range labels {
		key, text, _ := strings.Cut(label, "=")
		if !slices.Contains(s.Labels, Label{key, text}) {
			return false
		}
	}
	return true
}

func wantValue(t *testing.T, target Target, want float64, series ...string) {
	t.Helper()
	if got, ok := value(target, series[0], series[1:]...); !ok || math.Abs(got-want) > 1e-9*math.Max(1, want) {
		t.Errorf("%s: %v is %v (found: %v), want %v", target.Name, series, got, ok, want)
	}
}

func TestAnEngineExposesVLLMsNames(t *testing.T) {
	f := newFleet(t, oneVariant(func(v *VariantSpec) { v.ServedName = "llama" }))
	f.Advance(1)
	target := f.Series()[0]
	if target.Name != "chat/llama-l40s-0" || target.Namespace != "chat" || target.Pod != "llama-l40s-0" {
		t.Errorf("%s is pod %s in %s", target.Name, target.Pod, target.Namespace)
	}
	for name, buckets := range map[string]int{
		"vllm:num_requests_running": 0, "vllm:num_requests_waiting": 0, "vllm:kv_cache_usage_perc": 0,
		"vllm:num_preemptions_total": 0, "vllm:prefix_cache_queries_total": 0, "vllm:prefix_cache_hits_total": 0,
		"vllm:prompt_tokens_total": 0, "vllm:generation_tokens_total": 0,
		"vllm:time_to_first_token_seconds": 23, "vllm:inter_token_latency_seconds": 20,
		"vllm:request_queue_time_seconds": 22, "vllm:request_prefill_time_seconds": 22, "vllm:request_prompt_tokens": 17, "vllm:request_generation_tokens": 17,
	} {
		if buckets == 0 {
			wantValue(t, target, 0, name, "model_name=llama", "engine=0")
			continue
		}
		for _, suffix := range []string{"_count", "_sum"} {
			wantValue(t, target, 0, name+suffix, "model_name=llama", "engine=0")
		}
		wantValue(t, target, 0, name+"_bucket", "model_name=llama", "engine=0", "le=+Inf")
		if got := count(target, name+"_bucket"); got != buckets {
			t.Errorf("%s has %d buckets, want %d", name, got, buckets)
		}
	}
	for _, reason := range []string{"stop", "length", "abort"} {
		wantValue(t, target, 0, "vllm:request_success_total", "finished_reason="+reason, "model_name=llama")
	}
	wantValue(t, target, 1, "vllm:cache_config_info", "block_size=16", "num_gpu_blocks=6250", "engine=0")
	if _, ok := value(target, "vllm:cache_config_info", "model_name=llama"); ok {
		t.Error("cache_config_info has the model's name, which vLLM's has not")
	}
}

func count(target Target, name string) int {
	n := 0
	for _, s := range target.Samples {
		if s.Name == name {
			n++
		}
	}
	return n
}

func TestCountersAgreeWithOutcomes(t *testing.T) {
	f := newFleet(t, oneVariant(func(v *VariantSpec) { v.MaxSequences, v.KVTokens = 8, 3000 }))
	offer(t, f, seeded(61, 300, 4, 900, 100)...)
	f.Advance(math.Inf(1))
	target := f.Series()[0]
	prompts, outputs, ttft, decode, slow, tokens := 0., 0., 0., 0., 0., 0.
	for _, o := range f.Outcomes() {
		prompts += float64(o.Prompt)
		outputs += float64(o.Output)
		ttft += o.TTFT
		decode += o.ITL * float64(o.Output-1)
		tokens += float64(o.Output - 1)
		if o.TTFT > 2.5 {
			slow++
		}
	}
	wantValue(t, target, 300, "vllm:request_success_total", "finished_reason=stop")
	wantValue(t, target, prompts, "vllm:prompt_tokens_total")
	wantValue(t, target, outputs, "vllm:generation_tokens_total")
	wantValue(t, target, prompts, "vllm:prefix_cache_queries_total")
	wantValue(t, target, prompts, "vllm:request_prompt_tokens_sum")
	wantValue(t, target, outputs, "vllm:request_generation_tokens_sum")
	wantValue(t, target, ttft, "vllm:time_to_first_token_seconds_sum")
	queued, _ := value(target, "vllm:request_queue_time_seconds_sum")
	wantValue(t, target, ttft-queued, "vllm:request_prefill_time_seconds_sum")
	wantValue(t, target, 300, "vllm:request_prefill_time_seconds_count")
	wantValue(t, target, 300, "vllm:time_to_first_token_seconds_count")
	wantValue(t, target, 300-slow, "vllm:time_to_first_token_seconds_bucket", "le=2.5")
	wantValue(t, target, decode, "vllm:inter_token_latency_seconds_sum")
	wantValue(t, target, tokens, "vllm:inter_token_latency_seconds_count")
	wantValue(t, target, 0, "vllm:kv_cache_usage_perc")
	if preempted, _ := value(target, "vllm:num_preemptions_total"); preempted == 0 || slow == 0 {
		t.Errorf("%v preemptions, %v slow requests: the case is too easy", preempted, slow)
	}
}

func TestHistogramsAreCumulative(t *testing.T) {
	f := newFleet(t, oneVariant(nil))
	offer(t, f, seeded(62, 300, 10, 3000, 300)...)
	f.Advance(30)
	last, name := 0.0, ""
	for _, s := range f.Series()[0].Samples {
		if !strings.HasSuffix(s.Name, "_bucket") {
			continue
		}
		if s.Name == name && s.Value < last {
			t.Errorf("%s %v falls to %v from %v", s.Name, s.Labels, s.Value, last)
		}
		last, name = s.Value, s.Name
	}
	h := newHistogram([]float64{1, 2})
	h.observe(1, 3) // a bound belongs to its bucket
	h.observe(2.5, 1)
	if !slices.Equal(h.counts, []int{3, 0, 1}) || h.sum != 5.5 {
		t.Errorf("%+v", h)
	}
}

func TestOnlyReadyAndDrainingReplicasAnswerAScrape(t *testing.T) {
	f := newFleet(t, limited(2, nil))
	offer(t, f, Request{Arrival: 0, Model: chat, Prompt: 10, Output: 1000})
	f.Advance(1)
	scale(t, f, "llama-l40s", 3)
	f.Advance(2)
	if got := scraped(f); got != "llama-l40s-0 inference-gateway" {
		t.Errorf("while one loads and one is pending: %s", got)
	}
	scale(t, f, "llama-l40s", 0)
	if got := scraped(f); got != "llama-l40s-0 inference-gateway" {
		t.Errorf("while one drains: %s", got)
	}
	f.Advance(60)
	if got := scraped(f); got != "inference-gateway" {
		t.Errorf("at zero: %s", got)
	}
}

func scraped(f *Fleet) string {
	var pods []string
	for _, target := range f.Series() {
		pods = append(pods, target.Pod)
	}
	return strings.Join(pods, " ")
}

func TestAReplacedReplicaCountsFromZeroUnderItsOwnName(t *testing.T) {
	f := newFleet(t, oneVariant(nil))
	offer(t, f, seeded(63, 10, 10, 10, 10)...)
	f.Advance(10)
	scale(t, f, "llama-l40s", 0)
	scale(t, f, "llama-l40s", 1)
	f.Advance(100)
	target := f.Series()[0]
	if target.Name != "chat/llama-l40s-1" {
		t.Errorf("named %s", target.Name)
	}
	wantValue(t, target, 0, "vllm:prompt_tokens_total")
}

func TestTheGatewayExposesAModelAfterItsFirstRequest(t *testing.T) {
	spec := oneVariant(func(v *VariantSpec) { v.ServedName, v.Initial = "llama", 0 })
	other := spec.Variants[0]
	other.ID.Name, other.Target.Name = "tuned", "tuned"
	other.Model.Name = "meta-llama/Tuned_8B"
	spec.Variants = append(spec.Variants, other)
	f := newFleet(t, spec)
	if target := f.Series()[0]; len(target.Samples) != 0 {
		t.Errorf("%+v", target.Samples)
	}
	offer(t, f, Request{Arrival: 1, Model: other.Model, Prompt: 25, Output: 1})
	offer(t, f, Request{Arrival: 2, Model: chat, Prompt: 25, Output: 1}, Request{Arrival: 3, Model: chat, Prompt: 25, Output: 500})
	f.Advance(5)
	labels := []string{"model_name=llama-8b", "target_model_name=llama"}
	target := f.Series()[0]
	wantValue(t, target, 2, append([]string{"inference_objective_request_total"}, labels...)...)
	wantValue(t, target, 2, append([]string{"inference_extension_flow_control_queue_size"}, labels...)...)
	wantValue(t, target, 200, append([]string{"inference_extension_flow_control_queue_bytes"}, labels...)...)
	wantValue(t, target, 0, "inference_objective_running_requests", labels[0])
	wantValue(t, target, 1, "inference_extension_flow_control_queue_size", "inference_pool=tuned-8b")
	scale(t, f, "llama-l40s", 1)
	f.Advance(70)
	target = f.Series()[1]
	wantValue(t, target, 0, append([]string{"inference_extension_flow_control_queue_size"}, labels...)...)
	wantValue(t, target, 1, "inference_objective_running_requests", labels[0])
}

func TestNamespacesHaveTheirOwnGateways(t *testing.T) {
	spec := oneVariant(func(v *VariantSpec) { v.Initial = 0 })
	other := spec.Variants[0]
	other.ID.Namespace, other.Target.Namespace, other.Model.Namespace = "other", "other", "other"
	spec.Variants = append(spec.Variants, other)
	f := newFleet(t, spec)
	offer(t, f, Request{Arrival: 1, Model: fleet.ModelID{Namespace: "other", Name: chat.Name}, Prompt: 1, Output: 1})
	f.Advance(2)
	series := f.Series()
	if len(series) != 2 || series[0].Name != "chat/inference-gateway" || len(series[0].Samples) != 0 ||
		series[1].Name != "other/inference-gateway" || len(series[1].Samples) == 0 {
		t.Errorf("%+v", series)
	}
}

func TestSeriesOfOneMetricFollowEachOther(t *testing.T) {
	f := newFleet(t, mixed())
	load := seeded(64, 10, 10, 10, 10)
	load[3].Model.Name = "small"
	offer(t, f, load...)
	f.Advance(5)
	for _, target := range f.Series() {
		seen, previous := map[string]bool{}, ""
		for _, s := range target.Samples {
			name := s.Name
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				name = strings.TrimSuffix(name, suffix)
			}
			if name != previous && seen[name] {
				t.Errorf("%s has the series of %s in two places", target.Name, name)
			}
			seen[name], previous = true, name
		}
	}
}
