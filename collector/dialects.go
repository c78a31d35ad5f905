package collector

import (
	"slices"

	"github.com/wva-project/wva/engine"
)

// dialects are the names of every quantity over all engines, or over all gateways.
type dialects map[engine.Quantity]quantity

// quantity is the names under which a quantity is stored.
type quantity struct {
	// names are in order of precedence: of several that a pod has the first counts and the others
	// do not.
	names []name
	// over joins the engines of one pod.
	over engine.Aggregation
}

// name is one of the names of a quantity.
type name struct {
	metric string
	// scale turns the metric into the unit of the quantity. Zero means 1.
	scale float64
	// zeroWhile is a gauge of the same engine. While a pod exposes it and not this metric, the
	// metric is zero. Empty: a metric that is absent is unknown.
	zeroWhile string
	// alias is the other name under which the same series may be stored, before or after the
	// scraper changed. Empty if there is only one.
	alias string
	// escaped is true if this name is the escaped one of the two.
	escaped bool
	labels  engine.Labels
	bounds  []float64 // of a histogram of latencies, in seconds, ascending
}

// dialectLabel tells the names of one quantity apart within a query.
const dialectLabel = "wva_metric"

// Further aggregations that the product asks for.
const (
	least engine.Aggregation = "min"
	group engine.Aggregation = "group"
	count engine.Aggregation = "count"
)

// as returns the quantity with another aggregation.
func (q quantity) as(over engine.Aggregation) quantity { return quantity{names: q.names, over: over} }

// suffixed returns one of the counters that a histogram consists of.
func (q quantity) suffixed(suffix string) quantity {
	of := quantity{over: engine.Sum}
	for _, n := range q.names {
		n.metric += suffix
		if n.alias != "" {
			n.alias += suffix
		}
		of.names = append(of.names, n)
	}
	return of
}

// counters returns each metric of the quantity as a quantity of its own, under both of its names.
func (q quantity) counters() []quantity {
	var all []quantity
	for _, n := range q.names {
		if !n.escaped {
			all = append(all, quantity{over: q.over})
		}
		last := &all[len(all)-1]
		last.names = append(last.names, n)
	}
	return all
}

// each returns the expression of each of the quantity's metrics.
func (q quantity) each(series func(n name) string) []string {
	var expressions []string
	for _, n := range q.names {
		expressions = append(expressions, series(n))
	}
	return expressions
}

// engineDialects returns the names of the quantities of engines.
func engineDialects() dialects {
	d := make(dialects)
	for _, description := range engine.Quantities() {
		q := quantity{over: description.Over}
		for _, e := range engine.Engines() {
			q.names = append(q.names, stored(e.Names(description.Quantity), e.Labels)...)
		}
		d[description.Quantity] = q
	}
	return d
}

// gatewayDialects returns the names of the quantities of gateways.
func gatewayDialects() dialects {
	d := make(dialects)
	for _, description := range engine.GatewayQuantities() {
		q := quantity{over: description.Over}
		for _, g := range engine.Gateways() {
			q.names = append(q.names, stored(g.Names(description.Quantity), engine.Labels{})...)
		}
		d[description.Quantity] = q
	}
	return d
}

// gatewayModelLabels returns the labels that name the model of a gateway's series, the stronger
// ones last.
func gatewayModelLabels() []string {
	var models, targets []string
	for _, g := range engine.Gateways() {
		if !slices.Contains(models, g.Labels.Model) {
			models = append(models, g.Labels.Model)
		}
		if g.Labels.Target != "" && !slices.Contains(targets, g.Labels.Target) {
			targets = append(targets, g.Labels.Target)
		}
	}
	return append(models, targets...)
}

// selected is a metric, or some of its series.
func selected(metric, series string) string {
	if series == "" {
		return metric
	}
	return metric + "{" + series + "}"
}

// stored returns each name followed by the one under which Prometheus may have stored it instead.
func stored(names []engine.Name, labels engine.Labels) []name {
	var all []name
	for _, n := range names {
		own := name{metric: selected(n.Metric, n.Series), scale: n.Scale, zeroWhile: n.ZeroWhile, labels: labels, bounds: n.Bounds}
		escaped := selected(engine.Escaped(n.Metric), n.Series)
		if escaped == own.metric {
			all = append(all, own)
			continue
		}
		own.alias = escaped
		alias := own
		alias.metric, alias.alias, alias.escaped = escaped, own.metric, true
		alias.zeroWhile = engine.Escaped(n.ZeroWhile)
		all = append(all, own, alias)
	}
	return all
}
