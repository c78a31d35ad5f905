package config

import (
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/wva-project/wva/fleet"
)

// Bounds of a latency objective, and the share of requests that must meet it by default.
const (
	leastLatency      = time.Millisecond
	mostLatency       = 24 * time.Hour
	defaultPercentile = 0.95
)

// objective reads the latency objective of a row: ttft, itl and percentile. A percentile without a
// limit is an error, since it would have no effect.
func (r *rowReader) objective() (o fleet.Objective) {
	latency := duration(leastLatency, mostLatency, "500ms")
	for name, limit := range map[string]*time.Duration{"ttft": &o.TTFT, "itl": &o.ITL} {
		r.field(name, false, latency.allowed, func(text string) (wrong string) {
			*limit, wrong = latency.parse(text)
			return wrong
		})
	}
	r.number("percentile", false, number(0.01, 0.9999), &o.Percentile)
	given, hasPercentile := r.values["percentile"]
	switch {
	case o.TTFT > 0 || o.ITL > 0:
		if !hasPercentile {
			o.Percentile = defaultPercentile
		}
	case hasPercentile && r.values["ttft"] == nil && r.values["itl"] == nil:
		r.reject(given, "percentile has no effect without ttft and itl", "add ttft or itl, or remove it")
	}
	return o
}

// objectiveNodes returns the fields of a latency objective that are set.
func objectiveNodes(o fleet.Objective) (fields []*yaml.Node) {
	if o.TTFT > 0 {
		fields = append(fields, textNode("ttft"), textNode(formatDuration(o.TTFT)))
	}
	if o.ITL > 0 {
		fields = append(fields, textNode("itl"), textNode(formatDuration(o.ITL)))
	}
	if len(fields) > 0 {
		fields = append(fields, textNode("percentile"), decimalNode(o.Percentile))
	}
	return fields
}
