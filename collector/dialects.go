package collector

// quantity is one row of the table of dialects: something that engines or gateways report, and the names it goes by.
type quantity struct {
	// names stand in order of precedence: where a pod exposes several, the first counts and the others do not.
	names []name
	// over says how the engines of one pod make one number.
	over aggregation
}

// name is what one engine, or one version of it, calls a quantity.
type name struct {
	metric string
	// scale turns the metric into the product's unit. Zero means 1.
	scale float64
	// zeroWhile is a gauge of the same engine. While a pod exposes it and not this metric, the metric stands at zero: an
	// engine that makes its counters with the first request. Empty: a metric that is not there is not known.
	zeroWhile string
}

// aggregation joins the numbers of several engines.
type aggregation string

const (
	sum     aggregation = "sum"
	largest aggregation = "max"
	least   aggregation = "min"
	count   aggregation = "count"
)

// as returns the quantity with another way of joining engines.
func (q quantity) as(over aggregation) quantity { return quantity{names: q.names, over: over} }

// each returns the expression of each of the quantity's metrics.
func (q quantity) each(series func(metric string) string) []string {
	var expressions []string
	for _, n := range q.names {
		expressions = append(expressions, series(n.metric))
	}
	return expressions
}

// histogram is the names of a histogram without _bucket, _sum and _count, in order of precedence.
type histogram []string

// engineDialects is what is read of engines. vLLM's names since 0.10 stand before its older ones, then SGLang's.
type engineDialects struct {
	running, waiting, kv  quantity
	kvBlocks, kvTokens    quantity
	firstTokens           quantity // requests that got their first token, counter
	promptTokens, prompts quantity // counters: the mean length is their quotient
	outputTokens, outputs quantity
	// prefixHits of prefixQueries tokens of prompts were found in the prefix cache, counters.
	prefixHits, prefixQueries quantity
	activity                  quantity // counters that move when a model is used in any way, failing included
	timeToFirstToken          histogram
	interTokenLatency         histogram
	prefillTime               histogram // from when a request was taken into the batch to its first token; SGLang has none
	promptLengths             histogram // SGLang's are there only where it was told to collect them
	outputLengths             histogram
}

// gatewayDialects is what is read of gateways: endpoint pickers of llm-d and of the inference extension.
type gatewayDialects struct {
	requests quantity // counter
	queued   quantity
	activity quantity
}

// Labels of gateways, and of vLLM's cache_config_info.
const (
	gatewayModel  = "model_name"
	gatewayTarget = "target_model_name"
	engineIndex   = "engine"
	blockSize     = "block_size"
	blockCount    = "num_gpu_blocks"
)

func engines() engineDialects {
	return engineDialects{
		running: row(sum, "vllm:num_requests_running", "sglang:num_running_reqs"),
		waiting: row(sum, "vllm:num_requests_waiting", "sglang:num_queue_reqs"),
		kv:      row(largest, "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
		// The sizes are labels, not values.
		kvBlocks: row(largest, "vllm:cache_config_info"),
		kvTokens: row(sum, "sglang:max_total_num_tokens"),
		firstTokens: quantity{over: sum, names: []name{
			{metric: "vllm:time_to_first_token_seconds_count"},
			{metric: "sglang:time_to_first_token_seconds_count", zeroWhile: "sglang:num_running_reqs"},
		}},
		promptTokens: row(sum, "vllm:request_prompt_tokens_sum", "sglang:prompt_tokens_total"),
		prompts:      row(sum, "vllm:request_prompt_tokens_count", "sglang:num_requests_total"),
		outputTokens: row(sum, "vllm:request_generation_tokens_sum", "sglang:generation_tokens_total"),
		outputs:      row(sum, "vllm:request_generation_tokens_count", "sglang:num_requests_total"),
		// SGLang makes its counter of hits with the first one: a model without any is not known to have none.
		prefixHits:    row(sum, "vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total", "sglang:cached_tokens_total"),
		prefixQueries: row(sum, "vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total", "sglang:prompt_tokens_total"),
		activity: row(sum,
			"vllm:time_to_first_token_seconds_count", "vllm:request_success_total", "vllm:prompt_tokens_total",
			"sglang:time_to_first_token_seconds_count", "sglang:num_requests_total", "sglang:num_aborted_requests_total"),
		prefillTime:      histogram{"vllm:request_prefill_time_seconds"},
		promptLengths:    histogram{"vllm:request_prompt_tokens", "sglang:prompt_tokens_histogram"},
		outputLengths:    histogram{"vllm:request_generation_tokens", "sglang:generation_tokens_histogram"},
		timeToFirstToken: histogram{"vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"},
		interTokenLatency: histogram{
			"vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds",
			"sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds",
		},
	}
}

func gateways() gatewayDialects {
	return gatewayDialects{
		requests: row(sum, "llm_d_epp_request_total", "inference_objective_request_total", "inference_model_request_total"),
		queued:   row(sum, "llm_d_epp_flow_control_queue_size", "inference_extension_flow_control_queue_size"),
		activity: row(sum,
			"llm_d_epp_request_total", "inference_objective_request_total", "inference_model_request_total",
			"llm_d_epp_request_error_total", "inference_objective_request_error_total", "inference_model_request_error_total"),
	}
}

func row(over aggregation, metrics ...string) quantity {
	q := quantity{over: over}
	for _, metric := range metrics {
		q.names = append(q.names, name{metric: metric})
	}
	return q
}
