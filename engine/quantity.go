package engine

// Quantity is something that engines or gateways report.
type Quantity string

// The quantities of engines.
const (
	Running           Quantity = "requests running"
	Waiting           Quantity = "requests waiting"
	KVUsage           Quantity = "KV cache usage"
	Asleep            Quantity = "engine asleep"
	FirstTokens       Quantity = "first tokens"
	Activity          Quantity = "activity"
	Progress          Quantity = "progress"
	KVTokens          Quantity = "KV cache size"
	KVBlocks          Quantity = "KV cache blocks"
	PromptTokens      Quantity = "prompt tokens"
	Prompts           Quantity = "prompts"
	OutputTokens      Quantity = "output tokens"
	Outputs           Quantity = "outputs"
	GeneratedTokens   Quantity = "generated tokens"
	PromptLengths     Quantity = "prompt lengths"
	OutputLengths     Quantity = "output lengths"
	PrefixHits        Quantity = "prefix cache hits"
	PrefixQueries     Quantity = "prefix cache queries"
	TimeToFirstToken  Quantity = "time to first token"
	InterTokenLatency Quantity = "inter-token latency"
	RequestITL        Quantity = "inter-token latency of requests"
	PrefillTime       Quantity = "prefill time"
	GatewayRequests   Quantity = "gateway requests"
	GatewayQueue      Quantity = "gateway queue"
	GatewayActivity   Quantity = "gateway activity"
	GatewayWait       Quantity = "gateway wait"
)

// Type is the type of a metric.
type Type string

// The types of metrics.
const (
	Gauge     Type = "gauge"
	Counter   Type = "counter"
	Histogram Type = "histogram"
	Info      Type = "info" // the values are in the labels
)

// Aggregation joins the values of several engines in one pod.
type Aggregation string

// The aggregations, in the words of PromQL.
const (
	Sum     Aggregation = "sum"
	Largest Aggregation = "max"
)

// Description describes a quantity.
type Description struct {
	Quantity Quantity
	Type     Type
	Unit     string
	Over     Aggregation
	// Required is true if WVA cannot scale safely without the quantity: every engine or gateway has
	// a row for it.
	Required bool
	// Without is the consequence of a missing quantity.
	Without string
}

// Quantities returns the descriptions of the quantities of engines.
func Quantities() []Description {
	const held = "the variant is held"
	return []Description{
		{Running, Gauge, "requests", Sum, true, held},
		{Waiting, Gauge, "requests", Sum, true, held},
		{KVUsage, Gauge, "share, 0 to 1", Largest, true, held},
		{Asleep, Gauge, "1 if it is", Largest, false, "an engine that sleeps counts as capacity"},
		{FirstTokens, Counter, "requests", Sum, true, "the request rate is unknown: scale-down is blocked"},
		{Activity, Counter, "any", Sum, true, "a model with short requests may be found idle"},
		{Progress, Counter, "any", Sum, false, "a stuck replica is not noticed"},
		{KVTokens, Gauge, "tokens", Sum, false, "the size is taken from the flags, or the KV cache is not a limit"},
		{KVBlocks, Info, "tokens, blocks", Sum, false, "the size is taken from the flags, or the KV cache is not a limit"},
		{PromptTokens, Counter, "tokens", Sum, false, "the mean prompt length is unknown: no sizing by SLO"},
		{Prompts, Counter, "requests", Sum, false, "the mean prompt length is unknown: no sizing by SLO"},
		{OutputTokens, Counter, "tokens", Sum, false, "the mean output length is unknown: no sizing by SLO"},
		{Outputs, Counter, "requests", Sum, false, "the mean output length is unknown: no sizing by SLO"},
		{GeneratedTokens, Counter, "tokens", Sum, false, "requests of minutes are sized by the rate at which they start"},
		{PromptLengths, Histogram, "tokens", Sum, false, "sizing assumes prompts of a long tail around their mean"},
		{OutputLengths, Histogram, "tokens", Sum, false, "sizing assumes outputs of a long tail around their mean"},
		{PrefixHits, Counter, "tokens", Sum, false, "sizing assumes no prefix cache hits"},
		{PrefixQueries, Counter, "tokens", Sum, false, "sizing assumes no prefix cache hits"},
		{TimeToFirstToken, Histogram, "seconds", Sum, false, "a missed TTFT objective is not noticed"},
		{InterTokenLatency, Histogram, "seconds", Sum, false, "a missed ITL objective is not noticed"},
		{RequestITL, Histogram, "seconds, means", Sum, false, "the error budget counts tokens within the ITL objective, not requests"},
		{PrefillTime, Histogram, "seconds", Sum, false, "profiles are fitted without measured prefills"},
	}
}

// GatewayQuantities returns the descriptions of the quantities of gateways.
func GatewayQuantities() []Description {
	return []Description{
		{GatewayRequests, Counter, "requests", Sum, true, "the engines' request rate counts"},
		{GatewayQueue, Gauge, "requests", Sum, true, "a model scaled to zero is not started by its queue"},
		{GatewayActivity, Counter, "any", Sum, true, "a model with short requests may be found idle"},
		{GatewayWait, Histogram, "seconds", Sum, false, "the error budget counts the TTFT of engines, without the wait at the gateway"},
	}
}
