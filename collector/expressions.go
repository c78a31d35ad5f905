package collector

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/engine"
)

// expressions writes PromQL. Every result has the labels of an identity and nothing else:
// namespace, pod and model (byPod), or namespace and model (byModel).
type expressions struct {
	options Options
	engines dialects
	byPod   string
	byModel string
	podOnly string // namespace and pod
	// anyOf has the models, each as 1, of which any of the expressions has a series that meets the
	// condition.
	anyOf func(condition string, expressions []string) string
}

func newExpressions(o Options) expressions {
	e := expressions{
		options: o,
		engines: engineDialects(),
		byPod:   strings.Join([]string{o.NamespaceLabel, o.PodLabel, o.ModelLabel}, ", "),
		byModel: o.NamespaceLabel + ", " + o.ModelLabel,
		podOnly: o.NamespaceLabel + ", " + o.PodLabel,
	}
	e.anyOf = e.anyModel
	return e
}

// anyModel joins the series of each model before it compares: unions and comparisons of the series
// of every pod at every step of a subquery would cost ten times as much.
func (e expressions) anyModel(condition string, expressions []string) string {
	var met []string
	for _, expression := range expressions {
		met = append(met, fmt.Sprintf("max by (%s) (%s) %s", e.byModel, expression, condition))
	}
	return fmt.Sprintf("group by (%s) (%s)", e.byModel, either(met...))
}

// perPod returns a quantity for each pod. The function writes the expression of one metric's
// series. Names are never put under one selector: rate() of a regular expression over names fails
// for a pod that has samples of both in its range.
func (e expressions) perPod(q quantity, series func(n name) string) string {
	var names []string
	for _, n := range q.names {
		names = append(names, scaled(n, aggregate(q.over, e.byPod, series(n))))
	}
	return either(names...)
}

// perModel returns the sum of a quantity over the pods of each model.
func (e expressions) perModel(q quantity, series func(n name) string) string {
	return aggregate(engine.Sum, e.byModel, e.perPod(q, series))
}

func aggregate(over engine.Aggregation, by, expression string) string {
	return fmt.Sprintf("%s by (%s) (%s)", over, by, expression)
}

func scaled(n name, expression string) string {
	if n.scale == 0 || n.scale == 1 {
		return expression
	}
	return fmt.Sprintf("%s * %s", expression, number(n.scale))
}

// tagged marks an expression as a part of a query.
func tagged(p part, expression string) string {
	return fmt.Sprintf(`label_replace(%s, %q, %q, "", "")`, expression, partLabel, partNames[p])
}

// either returns the union of the expressions; of series with the same labels, the first.
func either(expressions ...string) string { return "(" + union(expressions) + ")" }

// union nests the operators as a balanced tree: each copies its operands, and most of a quantity's
// names have no series.
func union(expressions []string) string {
	if len(expressions) <= 2 {
		return strings.Join(expressions, " or ")
	}
	half := len(expressions) / 2
	return either(expressions[:half]...) + " or " + either(expressions[half:]...)
}

// over wraps a metric in a function over a range.
func over(function string, span time.Duration) func(name) string {
	return func(n name) string { return fmt.Sprintf("%s(%s[%s])", function, n.metric, duration(span)) }
}

func itself(n name) string { return n.metric }

// ago is the value of so long ago, or the last one of the five minutes before.
func ago(span time.Duration) func(name) string {
	return func(n name) string { return n.metric + " offset " + duration(span) }
}

// past has the series that are older than the window.
func (e expressions) past(metric string) string {
	return fmt.Sprintf("present_over_time(%s[%s] offset %s)", metric, duration(history), duration(e.options.Window))
}

// olderRate is the rate of the series that are older than the window.
func (e expressions) olderRate(n name) string {
	return fmt.Sprintf("(rate(%s[%s]) and %s)", n.metric, duration(e.options.Window), e.past(n.metric))
}

// bornRate counts all of the series that were born within the window: rate() would lose their first
// value.
func (e expressions) bornRate(n name) string {
	window := e.options.Window
	return fmt.Sprintf("(%s / %s)", e.born(n, fmt.Sprintf("last_over_time(%s[%s])", n.metric, duration(window))), seconds(window))
}

// born drops from an expression of a metric the series that are older than the window, and those of
// pods that were known under the other name before: Prometheus stores their counters under a new
// name now, and their values are of their whole life.
func (e expressions) born(n name, expression string) string {
	if n.alias == "" {
		return fmt.Sprintf("(%s unless %s)", expression, e.past(n.metric))
	}
	return fmt.Sprintf("(%s unless %s unless on (%s) %s)", expression, e.past(n.metric), e.byPod, e.past(n.alias))
}

// watched drops pods whose process is older than the range of past although Prometheus did not know
// it at the start of the window: their counters were not born, they were found. Without this, a new
// Prometheus would see a running fleet as a flood of requests. Pods that do not expose the start of
// their process are kept.
func (e expressions) watched(expression string) string {
	const started = "process_start_time_seconds"
	pods := fmt.Sprintf(`%s{%s!=""}`, started, e.options.PodLabel)
	window := e.options.Window
	return fmt.Sprintf("(%s unless on (%s) ((%s < time() - %s) unless %s offset %s))",
		expression, e.podOnly, pods, seconds(history+window), pods, duration(window))
}

// sampledAt is the time of the scrape of each series.
func sampledAt(n name) string { return "timestamp(" + n.metric + ")" }

// ratio returns the quotient if the denominator is not zero.
func ratio(numerator, denominator string) string {
	return fmt.Sprintf("(%s / (%s > 0))", numerator, denominator)
}

// subquery evaluates an expression at every step of (t-window, t] and folds the values. A window
// that is a millisecond shorter makes the number of steps the same in Prometheus 2, whose ranges
// include both ends, and in Prometheus 3.
func subquery(function, expression string, window, step time.Duration) string {
	return fmt.Sprintf("%s(%s[%s:%s])", function, expression, duration(window-time.Millisecond), duration(step))
}

// stepsIn returns the number of evaluations of such a subquery at the time t.
func stepsIn(t time.Time, window, step time.Duration) int {
	return int(floorTime(t, step).Sub(floorTime(t.Add(-window), step)) / step)
}

func duration(d time.Duration) string { return model.Duration(d).String() }

func seconds(d time.Duration) string { return number(d.Seconds()) }

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
