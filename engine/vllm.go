package engine

import "github.com/wva-project/wva/fleet"

// VLLM is vLLM 0.10 and later, with the names that older versions had behind the current ones:
// gpu_cache_usage_perc went in 0.12, time_per_output_token_seconds in 0.13. It serves text/plain,
// so that its names are stored as they are unless something between it and Prometheus escapes them.
//
// Requests that wait with the reason deferred wait for an adapter or for a transfer of their KV
// cache, not for capacity. In sleep mode an engine answers its health check and serves nothing.
//
// production-stack's router exposes copies of some of its gauges with the label server and without
// model_name.
func VLLM() Engine {
	return Engine{
		Name: fleet.EngineVLLM, Title: "vLLM",
		Programs: []string{"vllm serve", "vllm.entrypoints.openai.api_server", "vllm.entrypoints.cli.main"},
		Labels: Labels{
			Model: ModelLabel, Rank: "engine", BlockSize: "block_size", BlockCount: "num_gpu_blocks", Copied: "server",
		},
		Metrics: []Metric{
			metric(Running, "vllm:num_requests_running"),
			{Waiting, []Name{
				{Metric: "vllm:num_requests_waiting_by_reason", Series: `reason="capacity"`}, {Metric: "vllm:num_requests_waiting"},
			}},
			metric(KVUsage, "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
			{Asleep, []Name{{Metric: "vllm:engine_sleep_state", Series: `sleep_state=~"weights_offloaded|discard_all"`}}},
			metric(FirstTokens, "vllm:time_to_first_token_seconds_count"),
			metric(Activity, "vllm:time_to_first_token_seconds_count", "vllm:request_success_total", "vllm:prompt_tokens_total"),
			metric(Progress, "vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:request_success_total"),
			metric(KVBlocks, "vllm:cache_config_info"),
			metric(PromptTokens, "vllm:request_prompt_tokens_sum"),
			metric(Prompts, "vllm:request_prompt_tokens_count"),
			metric(OutputTokens, "vllm:request_generation_tokens_sum"),
			metric(Outputs, "vllm:request_generation_tokens_count"),
			metric(GeneratedTokens, "vllm:generation_tokens_total"),
			metric(PromptLengths, "vllm:request_prompt_tokens"),
			metric(OutputLengths, "vllm:request_generation_tokens"),
			metric(PrefixHits, "vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
			metric(PrefixQueries, "vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
			latencies(TimeToFirstToken, vllmTTFTBounds(), "vllm:time_to_first_token_seconds"),
			latencies(InterTokenLatency, vllmITLBounds(), "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
			latencies(RequestITL, vllmITLBounds(), "vllm:request_time_per_output_token_seconds"),
			// From the request's entry into the batch to its first token.
			metric(PrefillTime, "vllm:request_prefill_time_seconds"),
		},
		Flags: []Flag{
			{MaxSequences, []string{"max-num-seqs"}, "1024 on accelerators of 70 GiB and more, except A100; 256 on others"},
			{BatchedTokens, []string{"max-num-batched-tokens"}, "8192 on accelerators of 70 GiB and more, except A100; 2048 on others"},
			{TensorParallel, []string{"tensor-parallel-size", "tp"}, "1"},
			{Ranks, []string{"data-parallel-size", "dp"}, "1"},
			{PodRanks, []string{"data-parallel-size-local", "dpl"}, "all of them"},
			{CacheBlocks, []string{"num-gpu-blocks-override"}, "by free memory"},
			{BlockTokens, []string{"block-size"}, "by platform"},
			{Quantization, []string{"quantization", "q"}, "by the model's files"},
			{ServedNames, []string{"served-model-name"}, "the model's path"},
			{Adapters, []string{"lora-modules"}, "none"},
		},
	}
}

func vllmTTFTBounds() []float64 {
	return []float64{
		0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
	}
}

func vllmITLBounds() []float64 {
	return []float64{
		0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
	}
}
