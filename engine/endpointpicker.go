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
			latencies(GatewayWait, gatewayWaitBounds(), "llm_d_epp_flow_control_request_queue_duration_seconds"),
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
			latencies(GatewayWait, gatewayWaitBounds(), "inference_extension_flow_control_request_queue_duration_seconds"),
		},
	}
}

func gatewayWaitBounds() []float64 {
	return []float64{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
}
