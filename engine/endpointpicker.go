package engine

// endpointPickerLabels are those of both generations of endpoint pickers.
func endpointPickerLabels() GatewayLabels {
	return GatewayLabels{Model: ModelLabel, Target: "target_model_name"}
}

// LLMDEndpointPicker is the endpoint picker of llm-d 0.10 and later. It exposes the names of
// InferenceExtension beside its own.
func LLMDEndpointPicker() Gateway {
	return Gateway{
		Name: "llm-d", Title: "llm-d endpoint picker", Labels: endpointPickerLabels(),
		Metrics: []Metric{
			metric(GatewayRequests, "llm_d_epp_request_total"),
			metric(GatewayQueue, "llm_d_epp_flow_control_queue_size"),
			metric(GatewayActivity, "llm_d_epp_request_total", "llm_d_epp_request_error_total"),
		},
	}
}

// InferenceExtension is the endpoint picker of the Gateway API inference extension; its oldest
// names are those of inference models.
func InferenceExtension() Gateway {
	return Gateway{
		Name: "inference-extension", Title: "Gateway API inference extension", Labels: endpointPickerLabels(),
		Metrics: []Metric{
			metric(GatewayRequests, "inference_objective_request_total", "inference_model_request_total"),
			metric(GatewayQueue, "inference_extension_flow_control_queue_size"),
			metric(GatewayActivity,
				"inference_objective_request_total", "inference_model_request_total",
				"inference_objective_request_error_total", "inference_model_request_error_total"),
		},
	}
}
