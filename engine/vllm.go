package engine

import "github.com/wva-project/wva/fleet"

// VLLM is vLLM 0.10 and later, with the names that older versions had behind the current ones:
// gpu_cache_usage_perc went in 0.12, time_per_output_token_seconds in 0.13. It serves text/plain,
// so that its names are stored as they are unless something between it and Prometheus escapes them.
//
// production-stack's router exposes copies of some of its gauges with the label server and without
// model_name.
func VLLM() Engine {
	return Engine{
		Name: fleet.EngineVLLM, Title: "vLLM",
		Labels: Labels{
			Model: ModelLabel, Rank: "engine", BlockSize: "block_size", BlockCount: "num_gpu_blocks", Copied: "server",
		},
		Metrics: []Metric{
			metric(Running, "vllm:num_requests_running"),
			metric(Waiting, "vllm:num_requests_waiting"),
			metric(KVUsage, "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
			metric(FirstTokens, "vllm:time_to_first_token_seconds_count"),
			metric(Activity, "vllm:time_to_first_token_seconds_count", "vllm:request_success_total", "vllm:prompt_tokens_total"),
			metric(Progress, "vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:request_success_total"),
			metric(KVBlocks, "vllm:cache_config_info"),
			metric(PromptTokens, "vllm:request_prompt_tokens_sum"),
			metric(Prompts, "vllm:request_prompt_tokens_count"),
			metric(OutputTokens, "vllm:request_generation_tokens_sum"),
			metric(Outputs, "vllm:request_generation_tokens_count"),
			metric(PromptLengths, "vllm:request_prompt_tokens"),
			metric(OutputLengths, "vllm:request_generation_tokens"),
			metric(PrefixHits, "vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
			metric(PrefixQueries, "vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
			metric(TimeToFirstToken, "vllm:time_to_first_token_seconds"),
			metric(InterTokenLatency, "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
			// From the request's entry into the batch to its first token.
			metric(PrefillTime, "vllm:request_prefill_time_seconds"),
		},
		Flags: []Flag{
			{MaxSequences, []string{"max-num-seqs"}, "1024 on accelerators of 70 GiB and more, except A100; 256 on others"},
			{BatchedTokens, []string{"max-num-batched-tokens"}, "8192 on accelerators of 70 GiB and more, except A100; 2048 on others"},
			{TensorParallel, []string{"tensor-parallel-size", "tp"}, "1"},
			{Ranks, []string{"data-parallel-size-local", "dpl", "data-parallel-size", "dp"}, "1"},
			{CacheBlocks, []string{"num-gpu-blocks-override"}, "by free memory"},
			{BlockTokens, []string{"block-size"}, "by platform"},
			{Quantization, []string{"quantization", "q"}, "by the model's files"},
		},
	}
}
