package engine

// Gateway is a gateway, or the endpoint picker of one: it counts the requests of each model and
// queues them.
type Gateway struct {
	Name    string // in lower case, unique
	Title   string // its name in prose
	Labels  GatewayLabels
	Metrics []Metric // at most one row for each quantity
}

// GatewayLabels are the names of the labels of a gateway's series.
type GatewayLabels struct {
	// Model is the label of the model name in the request, Target that of the served model name to
	// which the gateway rewrites it. An empty Target means that the name is not rewritten.
	Model, Target string
}

// Gateways returns the gateways in order of precedence.
func Gateways() []Gateway {
	return []Gateway{LLMDEndpointPicker(), InferenceExtension()}
}

// Names returns the names of a quantity; none if the gateway does not report it.
func (g Gateway) Names(q Quantity) []Name { return names(g.Metrics, q) }
