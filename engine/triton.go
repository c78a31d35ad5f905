package engine

// Triton is Triton Inference Server with the TensorRT-LLM backend, from the versions on that count
// tokens. Its model is the directory of the backend's model in the repository, tensorrt_llm in the
// templates; relabeling the scrape may write another name over it.
//
// It counts a request with its tokens when that ends: the rate of first tokens is that of
// completions. Triton's own counters are not read, since the models around the backend, such as
// ensemble and preprocessing, and all other models of Triton servers have them too. Its histogram
// of first responses is in milliseconds, and off by default: it is not read as the time to first
// token. Neither it nor the backend measures the time between tokens or hits of the prefix cache.
//
// Its limits are in the files of the model repository.
func Triton() Engine {
	request, block := "nv_trt_llm_request_metrics", "nv_trt_llm_kv_cache_block_metrics"
	return Engine{
		Name: "triton-tensorrt-llm", Title: "Triton with TensorRT-LLM", Alias: "triton",
		Programs: []string{"tritonserver", "launch_triton_server.py"},
		Labels:   Labels{Model: "model"},
		Metrics: []Metric{
			{Running, []Name{{Metric: request, Series: `request_type="scheduled"`}}},
			{Waiting, []Name{{Metric: request, Series: `request_type="waiting"`}}},
			{KVUsage, []Name{{Metric: block, Series: `kv_cache_block_type="fraction"`}}},
			metric(FirstTokens, "nv_llm_input_token_len_count"),
			metric(Activity, "nv_llm_input_token_len_count"),
			{KVTokens, []Name{{
				Metric: block, Series: `kv_cache_block_type="max"`, Times: block + `{kv_cache_block_type="tokens_per"}`,
			}}},
			metric(PromptTokens, "nv_llm_input_token_len_sum"),
			metric(Prompts, "nv_llm_input_token_len_count"),
			metric(OutputTokens, "nv_llm_output_token_len_sum"),
			metric(Outputs, "nv_llm_output_token_len_count"),
			metric(PromptLengths, "nv_llm_input_token_len"),
			metric(OutputLengths, "nv_llm_output_token_len"),
		},
	}
}
