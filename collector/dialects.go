package collector

import (
	"fmt"
	"slices"
	"strings"

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
	metric string // with its matchers, if it has some
	// scale turns the metric into the unit of the quantity. Zero means 1.
	scale float64
	// times is a gauge of the same engine by which a value is multiplied, with its matchers. Empty:
	// none.
	times string
	// zeroWhile is a gauge of the same engine. While a pod exposes it and not this metric, the
	// metric is zero. Empty: a metric that is absent is unknown.
	zeroWhile string
	// alias is the other name under which the same series may be stored, before or after the
	// scraper changed. Empty if there is only one.
	alias string
	// escaped is true if this name is the escaped one of the two.
	escaped bool
	labels  engine.Labels
	// model is the engine's own label of the model if series are grouped by another one, grouped.
	// Empty if they are the same.
	model, grouped string
	bounds         []float64 // of a histogram of latencies, in seconds, ascending
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
		n.metric, n.alias = suffixed(n.metric, suffix), suffixed(n.alias, suffix)
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

// each returns the expression of each of the quantity's metrics, with the model in the label by
// which series are grouped.
func (q quantity) each(series func(n name) string) []string {
	var expressions []string
	for _, n := range q.names {
		expressions = append(expressions, n.labelled(series(n)))
	}
	return expressions
}

// labelled copies the model of the series of an expression about one metric into the label by which
// they are grouped. That has no value in any of them (stored), so that no two become the same: a
// pod could fail the whole query with them.
func (n name) labelled(expression string) string {
	if n.model == "" {
		return expression
	}
	return fmt.Sprintf(`label_replace(%s, %q, "$1", %q, "(.+)")`, expression, n.grouped, n.model)
}

// engineDialects returns the names of the quantities of engines, whose series are grouped by a
// label of the model.
func engineDialects(grouped string) dialects {
	d := make(dialects)
	for _, description := range engine.Quantities() {
		q := quantity{over: description.Over}
		for _, e := range engine.Engines() {
			labels := e.Labels
			labels.Model = e.ModelLabel(grouped)
			q.names = append(q.names, stored(e.Names(description.Quantity), labels, grouped)...)
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
			q.names = append(q.names, stored(g.Names(description.Quantity), engine.Labels{}, "")...)
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

// selected is the series of a selector, or some of them.
func selected(selector, matchers string) string {
	within, narrowed := strings.CutSuffix(selector, "}")
	switch {
	case selector == "" || matchers == "":
		return selector
	case narrowed:
		return within + "," + matchers + "}"
	}
	return selector + "{" + matchers + "}"
}

// suffixed is a selector of one of the counters that a histogram consists of.
func suffixed(selector, suffix string) string {
	metric, matchers, narrowed := strings.Cut(selector, "{")
	switch {
	case selector == "":
		return ""
	case narrowed:
		return metric + suffix + "{" + matchers
	}
	return metric + suffix
}

// stored returns each name followed by the one under which Prometheus may have stored it instead.
// If the engine has a model label of its own, series that have a value in the one by which series
// are grouped are left out.
func stored(names []engine.Name, labels engine.Labels, grouped string) []name {
	var all []name
	for _, n := range names {
		own := name{scale: n.Scale, labels: labels, bounds: n.Bounds}
		unlabelled := ""
		if labels.Model != grouped {
			own.model, own.grouped = labels.Model, grouped
			unlabelled = grouped + `=""`
		}
		series := func(metric string) string { return selected(selected(metric, n.Series), unlabelled) }
		own.metric, own.times, own.zeroWhile = series(n.Metric), selected(n.Times, unlabelled), selected(n.ZeroWhile, unlabelled)
		escaped := series(engine.Escaped(n.Metric))
		if escaped == own.metric {
			all = append(all, own)
			continue
		}
		own.alias = escaped
		alias := own
		alias.metric, alias.alias, alias.escaped = escaped, own.metric, true
		alias.times, alias.zeroWhile = selected(escapedSelector(n.Times), unlabelled), selected(engine.Escaped(n.ZeroWhile), unlabelled)
		all = append(all, own, alias)
	}
	return all
}

// escapedSelector is the selector of a metric under its escaped name.
func escapedSelector(selector string) string {
	metric, matchers, narrowed := strings.Cut(selector, "{")
	if narrowed {
		matchers = "{" + matchers
	}
	return engine.Escaped(metric) + matchers
}
