package engine_test

import (
	"fmt"

	"github.com/wva-project/wva/engine"
)

// The names under which the collector asks for a quantity: each as the engine writes it, and as
// Prometheus may have stored it.
func Example() {
	for _, e := range engine.Engines() {
		for _, name := range e.Names(engine.Waiting) {
			fmt.Println(e.Title, name.Metric, engine.Escaped(name.Metric))
		}
		fmt.Println(e.Title, e.Flag(engine.MaxSequences))
	}
	// Output:
	// vLLM vllm:num_requests_waiting_by_reason vllm_num_requests_waiting_by_reason
	// vLLM vllm:num_requests_waiting vllm_num_requests_waiting
	// vLLM [max-num-seqs]
	// SGLang sglang:num_queue_reqs sglang_num_queue_reqs
	// SGLang [max-running-requests]
	// TensorRT-LLM trtllm_num_requests_waiting trtllm_num_requests_waiting
	// TensorRT-LLM [max-batch-size]
	// Triton with TensorRT-LLM nv_trt_llm_request_metrics nv_trt_llm_request_metrics
	// Triton with TensorRT-LLM []
}
