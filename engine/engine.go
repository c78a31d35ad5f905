package engine

import "github.com/wva-project/wva/fleet"

// Engine is an inference engine.
type Engine struct {
	Name  fleet.Engine
	Title string // its name in prose
	// Setup is the settings without which it does not expose all of its metrics, and their path if
	// that is not /metrics, in prose. Empty: none are needed.
	Setup string
	// Programs start the engine: each is a word of a command line without its directory, or two
	// that follow each other.
	Programs []string
	// Alias is a second value of the label EngineTypeLabel, beside Name; empty if there is none.
	Alias   string
	Labels  Labels
	Metrics []Metric // at most one row for each quantity
	Flags   []Flag   // at most one row for each limit
}

// Labels are the names of the labels of an engine's series.
type Labels struct {
	// Model is the label of the served model name.
	Model string
	// Rank is the label that tells the engines of one pod apart; empty if that is not needed.
	Rank string
	// BlockSize and BlockCount are labels of the metric of KVBlocks: tokens in a block, and blocks.
	// Empty if the engine reports its KV cache size as a value.
	BlockSize, BlockCount string
	// Copied is a label that a router puts on the copies of the engine's series that it exposes
	// itself without Model. Copies are not counted. Empty if no router does that.
	Copied string
}

// EngineTypeLabel is the label of pods by which llm-d knows their engine.
const EngineTypeLabel = "llm-d.ai/engine-type"

// ModelLabel is the label of the served model name of most engines.
const ModelLabel = "model_name"

// Metric is the names of one quantity.
type Metric struct {
	Quantity Quantity
	// Names are in order of precedence: if a pod has several, the first counts and the others do
	// not. Of Activity, Progress and GatewayActivity all count.
	Names []Name
}

// Name is a name of a quantity in one version of an engine; the name of a histogram has no suffix.
type Name struct {
	Metric string
	// Series selects some of the metric's series, as PromQL writes it within braces. Empty: all.
	Series string
	// Scale turns a value into the unit of the quantity. Zero means 1.
	Scale float64
	// Times is a gauge of the same engine by which a value is multiplied, with its matchers if it
	// has some. While a pod does not expose it, the quantity is unknown. Empty: none.
	Times string
	// ZeroWhile is a gauge of the same engine. While a pod exposes it but not Metric, the quantity
	// is zero: the engine creates the counter with its first request. Empty: a metric that is
	// absent is unknown.
	ZeroWhile string
	// Bounds are the upper bounds of the buckets of a histogram of latencies as it ships, ascending
	// and without the last one, which has none. Empty: none are needed.
	Bounds []float64
}

// Engines returns the engines in order of precedence.
func Engines() []Engine { return []Engine{VLLM(), SGLang(), TensorRTLLM(), Triton()} }

// ModelLabel returns the label of the served model name if series are grouped by a label: the
// engine's own if that is the default, ModelLabel. Another one is that of all engines, because
// relabeling the scrape has written it.
func (e Engine) ModelLabel(grouped string) string {
	if grouped == ModelLabel {
		return e.Labels.Model
	}
	return grouped
}

// Names returns the names of a quantity; none if the engine does not report it.
func (e Engine) Names(q Quantity) []Name { return names(e.Metrics, q) }

// Flag returns the names of the flag that sets a limit; none if the engine has no such flag.
func (e Engine) Flag(l Limit) []string {
	for _, flag := range e.Flags {
		if flag.Limit == l {
			return flag.Names
		}
	}
	return nil
}

func names(metrics []Metric, q Quantity) []Name {
	for _, metric := range metrics {
		if metric.Quantity == q {
			return metric.Names
		}
	}
	return nil
}

// latencies returns the row of a histogram of latencies whose names have the same bounds.
func latencies(q Quantity, bounds []float64, metrics ...string) Metric {
	row := metric(q, metrics...)
	for i := range row.Names {
		row.Names[i].Bounds = bounds
	}
	return row
}

// metric returns the row of a quantity whose values are in its unit.
func metric(q Quantity, metrics ...string) Metric {
	row := Metric{Quantity: q}
	for _, name := range metrics {
		row.Names = append(row.Names, Name{Metric: name})
	}
	return row
}
