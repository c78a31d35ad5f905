package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/wva-project/wva/engine"
)

// nameLabel tells the names of one quantity apart, and boundLabel has the bound of a bucket.
const (
	nameLabel  = "wva_metric"
	boundLabel = "le"
)

// patience is the number of windows without samples after which a counter that shows up again is a
// new one.
const patience = 5

// checkMatchers returns an error if the text is no list of label matchers.
func checkMatchers(text string) error {
	if text == "" {
		return nil
	}
	selectors, err := parser.NewParser(parser.Options{}).ParseMetricSelector("any{" + text + "}")
	if err == nil {
		named := slices.DeleteFunc(selectors, func(m *labels.Matcher) bool { return m.Name != model.MetricNameLabel })
		if len(named) > 1 {
			err = errors.New("queries have metric names of their own")
		}
	}
	if err != nil {
		return fmt.Errorf(`matchers %q: %w; write label matchers as in PromQL without braces, such as cluster="eu-1"`, text, err)
	}
	return nil
}

// name is a name of a quantity with the engine's label of the model.
type name struct {
	engine.Name
	model string
}

// names returns the names of a quantity over all engines, each followed by its escaped one.
func (o Options) names(q engine.Quantity) []name {
	var all []name
	for _, e := range engine.Engines() {
		for _, n := range e.Names(q) {
			own := name{n, e.ModelLabel(o.ModelLabel)}
			all = append(all, own)
			if escaped := engine.Escaped(n.Metric); escaped != n.Metric {
				own.Metric = escaped
				all = append(all, own)
			}
		}
	}
	return all
}

// selector returns the series of a metric, or of a counter with the suffix that a histogram
// consists of, that are the model's.
func (o Options) selector(n name, suffix string) string {
	var matchers []string
	if n.Series != "" {
		matchers = append(matchers, n.Series)
	}
	if n.model != o.ModelLabel {
		matchers = append(matchers, o.ModelLabel+`=""`)
	}
	if o.Model.Name != "" {
		matchers = append(matchers, fmt.Sprintf("%s=%q", n.model, o.Model.Name))
	} else {
		matchers = append(matchers, n.model+`!=""`)
	}
	if o.Model.Namespace != "" {
		matchers = append(matchers, fmt.Sprintf("%s=%q", o.NamespaceLabel, o.Model.Namespace))
	}
	if o.Matchers != "" {
		matchers = append(matchers, o.Matchers)
	}
	return n.Metric + suffix + "{" + strings.Join(matchers, ",") + "}"
}

// total is the sum of a quantity over the pods of the model. Of several names that a pod has the
// first counts; of several jobs that scrape one address, the one with the most.
func (o Options) total(q engine.Quantity, series func(selector string) string) string {
	address := strings.Join([]string{o.NamespaceLabel, o.PodLabel, "instance"}, ", ")
	var pods []string
	for _, n := range o.names(q) {
		scale := ""
		if n.Scale != 0 && n.Scale != 1 {
			scale = fmt.Sprintf(" * %g", n.Scale)
		}
		pods = append(pods, fmt.Sprintf("max by (%s) (sum by (%s, job) (%s))%s", address, address, series(o.selector(n, "")), scale))
	}
	return "sum(" + strings.Join(pods, " or ") + ")"
}

// buckets has the buckets of a histogram of lengths, by name and bound.
func (o Options) buckets(q engine.Quantity) string {
	var all []string
	for i, n := range o.names(q) {
		rate := fmt.Sprintf("sum by (%s) (rate(%s[%s]))", boundLabel, o.selector(n, "_bucket"), duration(block))
		all = append(all, fmt.Sprintf(`label_replace(%s, %q, "%d", "", "")`, rate, nameLabel, i))
	}
	return strings.Join(all, " or ")
}

// grown is how much a counter has grown in a time, exactly: from its last value before that, or the
// first one of a series that is new, to its last one. One that fell was reset. The requests of a
// replica that has vanished are in it, and those of some windows without samples before it.
func grown(in time.Duration) func(selector string) string {
	return func(selector string) string {
		last := fmt.Sprintf("last_over_time(%s[%s])", selector, duration(in))
		before := fmt.Sprintf("(last_over_time(%s[%s] offset %s) or min_over_time(%s[%s]))",
			selector, duration(patience*in), duration(in), selector, duration(in))
		return fmt.Sprintf("((%s - %s) >= 0 or %s)", last, before, last)
	}
}

func itself(selector string) string { return selector }

// scrapes is the number of scrapes in a window.
func (o Options) scrapes() string {
	var pods []string
	for _, n := range o.names(engine.Running) {
		pods = append(pods, fmt.Sprintf("max(count_over_time(%s[%s]))", o.selector(n, ""), duration(o.Step)))
	}
	return "max(" + strings.Join(pods, " or ") + ")"
}

// models has the models that have engines, by namespace and name.
func (o Options) models() string {
	by := o.NamespaceLabel + ", " + o.ModelLabel
	var all []string
	for _, n := range o.names(engine.Running) {
		series := o.selector(n, "")
		if n.model != o.ModelLabel {
			series = fmt.Sprintf(`label_replace(%s, %q, "$1", %q, "(.+)")`, series, o.ModelLabel, n.model)
		}
		all = append(all, fmt.Sprintf("group by (%s) (%s)", by, series))
	}
	return strings.Join(all, " or ")
}

func duration(d time.Duration) string { return model.Duration(d).String() }
