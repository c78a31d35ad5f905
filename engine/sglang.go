package engine

import "github.com/wva-project/wva/fleet"

// SGLang is SGLang with --enable-metrics. It serves OpenMetrics by prometheus_client, so that most
// Prometheus servers store its names with underscores.
//
// It creates its counters with the first request, and that of cached tokens with the first hit: a
// model without any is not known to have none. It counts the tokens of a request when that ends, so
// that gaps between tokens are its progress. It has no prefill time, no
// process_start_time_seconds (prometheus_client's multiprocess mode), and histograms of lengths
// only if it is told to collect them.
func SGLang() Engine {
	return Engine{
		Name: fleet.EngineSGLang, Title: "SGLang", Setup: "the flag `--enable-metrics`",
		Programs: []string{"sglang.launch_server", "sglang serve"},
		Labels:   Labels{Model: ModelLabel},
		Metrics: []Metric{
			metric(Running, "sglang:num_running_reqs"),
			metric(Waiting, "sglang:num_queue_reqs"),
			metric(KVUsage, "sglang:token_usage"),
			{FirstTokens, []Name{{
				Metric: "sglang:time_to_first_token_seconds_count", ZeroWhile: "sglang:num_running_reqs",
			}}},
			metric(Activity,
				"sglang:time_to_first_token_seconds_count", "sglang:num_requests_total", "sglang:num_aborted_requests_total"),
			metric(Progress,
				"sglang:time_to_first_token_seconds_count", "sglang:inter_token_latency_seconds_count",
				"sglang:time_per_output_token_seconds_count", "sglang:num_requests_total"),
			metric(KVTokens, "sglang:max_total_num_tokens"),
			metric(PromptTokens, "sglang:prompt_tokens_total"),
			metric(Prompts, "sglang:num_requests_total"),
			metric(OutputTokens, "sglang:generation_tokens_total"),
			metric(Outputs, "sglang:num_requests_total"),
			metric(GeneratedTokens, "sglang:inter_token_latency_seconds_count", "sglang:time_per_output_token_seconds_count"),
			metric(PromptLengths, "sglang:prompt_tokens_histogram"),
			metric(OutputLengths, "sglang:generation_tokens_histogram"),
			metric(PrefixHits, "sglang:cached_tokens_total"),
			metric(PrefixQueries, "sglang:prompt_tokens_total"),
			latencies(TimeToFirstToken, sglangTTFTBounds(), "sglang:time_to_first_token_seconds"),
			latencies(InterTokenLatency, sglangITLBounds(), "sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"),
		},
		Flags: []Flag{
			{MaxSequences, []string{"max-running-requests"}, "by KV cache size"},
			{BatchedTokens, []string{"chunked-prefill-size"}, "2048 to 16384, by the accelerator's memory"},
			{TensorParallel, []string{"tensor-parallel-size", "tp-size", "tp"}, "1"},
			{CacheTokens, []string{"max-total-tokens"}, "by free memory"},
			{Quantization, []string{"quantization"}, "by the model's files"},
			{ServedNames, []string{"served-model-name"}, "the model's path"},
			{Adapters, []string{"lora-paths"}, "none"},
		},
	}
}

// These are SGLang's defaults; its flags --bucket-time-to-first-token and
// --bucket-inter-token-latency set others.
func sglangTTFTBounds() []float64 {
	return []float64{0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400}
}

func sglangITLBounds() []float64 {
	return []float64{
		0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8,
	}
}
