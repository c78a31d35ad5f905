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
		engines: engineDialects(o.ModelLabel),
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
		names = append(names, scaled(n, e.multiplied(n, e.joined(q.over, n.labelled(series(n))), series)))
	}
	return either(names...)
}

// multiplied is a value of each pod times that of the gauge by which it is multiplied.
func (e expressions) multiplied(n name, value string, series func(n name) string) string {
	if n.times == "" {
		return value
	}
	factor := n
	factor.metric = n.times
	return value + " * " + e.joined(engine.Largest, n.labelled(series(factor)))
}

// Labels of every series that Prometheus scrapes: the job, and the address that it asks.
const jobLabel, instanceLabel = "job", "instance"

// joined aggregates the series of each pod. If several jobs scrape one address, the series of one
// of them count: they are the same engines. The series of one job are added up first, since engines
// have labels of their own that nothing here knows.
func (e expressions) joined(over engine.Aggregation, series string) string {
	if over != engine.Sum {
		return aggregate(over, e.byPod, series)
	}
	address := e.byPod + ", " + instanceLabel
	ofJobs := aggregate(engine.Sum, address+", "+jobLabel, series)
	return aggregate(engine.Sum, e.byPod, aggregate(engine.Largest, address, ofJobs))
}

// scrapedTwice has the pods of which an address is scraped by several jobs.
func (e expressions) scrapedTwice() string {
	address := e.byPod + ", " + instanceLabel
	var pods []string
	for _, n := range e.engines[engine.Running].names {
		jobs := aggregate(count, address, aggregate(group, address+", "+jobLabel, n.labelled(n.metric)))
		pods = append(pods, aggregate(group, e.byPod, jobs+" > 1"))
	}
	return either(pods...)
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

// within is the last value within so much time before an instant, even if it is marked as stale.
// Prometheus rejected an offset of zero until version 3.
func within(span, before time.Duration) func(name) string {
	if before == 0 {
		return over("last_over_time", span)
	}
	return func(n name) string {
		return fmt.Sprintf("last_over_time(%s[%s] offset %s)", n.metric, duration(span), duration(before))
	}
}

// alive is a quantity of each pod. If its last scrape failed, the pod has the value of the one
// before: the whole pod, because series under other labels may have replaced those.
func (e expressions) alive(q quantity) string {
	return either(e.perPod(q, itself), e.perPod(q, within(e.options.gap(), 0)))
}

// present has the pods, each as 1, that have a series of the quantity in a range before the window.
func (e expressions) present(q quantity, span time.Duration) string {
	return e.perPod(q.as(group), func(n name) string {
		return fmt.Sprintf("present_over_time(%s[%s] offset %s)", n.metric, duration(span), duration(e.options.Window))
	})
}

// foundPods is the values of the counters of those pods that had none before the window, under no
// labels and no name. They were created within the window, or only found: the values of those are
// of their whole life.
func (e expressions) foundPods(q quantity) string {
	return fmt.Sprintf("(%s unless %s)", e.perPod(q, within(e.options.Window, 0)), e.present(q, history))
}

// born keeps the pods whose counters were created within the window and not found: Prometheus
// watched the pod before, or its processes are younger than the window. Without this, an empty
// Prometheus, another label or a gap would look like a flood of requests.
func (e expressions) born(expression, watched, on string) string {
	return fmt.Sprintf("((%[1]s and on (%[2]s) %[3]s) or (%[1]s and on (%[4]s) (min by (%[4]s) (%[5]s) >= time() - %[6]s)))",
		expression, on, watched, e.podOnly, e.processStart(), seconds(e.options.Window))
}

// processStart is when the processes of pods were started. Engines in multiprocess mode do not say
// it.
func (e expressions) processStart() string {
	return fmt.Sprintf(`process_start_time_seconds{%s!=""}`, e.options.PodLabel)
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
