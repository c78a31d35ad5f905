package engine

// TensorRTLLM is TensorRT-LLM's trtllm-serve 1.3 and later. Older versions have other names and
// write "undefined" for the model. It serves its metrics by prometheus_client in multiprocess mode,
// without process_start_time_seconds.
//
// It counts a request with its tokens and its latencies when that ends: the rate of first tokens is
// that of completions, and there is no counter of progress between them. It reads its gauges then
// too: a replica that has had no request has none, and an idle one has those of its last iteration.
//
// Its time per output token is the mean of a request; it is read as the time between tokens too. It
// has no histograms of lengths.
func TensorRTLLM() Engine {
	return Engine{
		Name: "trtllm-serve", Title: "TensorRT-LLM",
		Setup:    "`enable_iter_perf_stats`, `return_perf_metrics`; path `/prometheus/metrics`",
		Programs: []string{"trtllm-serve"},
		Labels:   Labels{Model: ModelLabel},
		Metrics: []Metric{
			metric(Running, "trtllm_num_requests_running"),
			metric(Waiting, "trtllm_num_requests_waiting"),
			metric(KVUsage, "trtllm_kv_cache_utilization"),
			metric(FirstTokens, "trtllm_time_to_first_token_seconds_count", "trtllm_request_success_total"),
			metric(Activity, "trtllm_time_to_first_token_seconds_count", "trtllm_request_success_total"),
			{KVTokens, []Name{{Metric: "trtllm_kv_cache_max_blocks", Times: "trtllm_kv_cache_tokens_per_block"}}},
			metric(PromptTokens, "trtllm_prompt_tokens_total"),
			metric(Prompts, "trtllm_request_success_total"),
			metric(OutputTokens, "trtllm_generation_tokens_total"),
			metric(Outputs, "trtllm_request_success_total"),
			metric(PrefixHits, "trtllm_prompt_cached_tokens_total"),
			metric(PrefixQueries, "trtllm_prompt_tokens_total"),
			latencies(TimeToFirstToken, vllmTTFTBounds(), "trtllm_time_to_first_token_seconds"),
			latencies(InterTokenLatency, vllmITLBounds(), "trtllm_time_per_output_token_seconds"),
			latencies(RequestITL, vllmITLBounds(), "trtllm_time_per_output_token_seconds"),
			// From the request's first iteration to its first token.
			metric(PrefillTime, "trtllm_request_prefill_time_seconds"),
		},
		Flags: []Flag{
			{MaxSequences, []string{"max-batch-size"}, "by version"},
			{BatchedTokens, []string{"max-num-tokens"}, "by version"},
			{TensorParallel, []string{"tensor-parallel-size", "tp-size"}, "1"},
		},
	}
}
