package collector

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// matchers are the label matchers that every selector of every query has, beside its own.
type matchers []*labels.Matcher

// parseMatchers parses label matchers as PromQL has them between braces; empty text has none.
func parseMatchers(text string) (matchers, error) {
	if text == "" {
		return nil, nil
	}
	// a selector needs a name, or a matcher that no empty label meets
	parsed, err := parser.NewParser(parser.Options{}).ParseMetricSelector("any{" + text + "}")
	var own matchers
	if err == nil {
		own = slices.DeleteFunc(slices.Clone(parsed), func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel })
		if len(own) != len(parsed)-1 {
			err = errors.New("a query has metric names of its own")
		}
	}
	if err != nil {
		if syntax, found := errors.AsType[parser.ParseErrors](err); found && len(syntax) > 0 {
			err = syntax[0].Err
		}
		return nil, fmt.Errorf(`matchers %q: %w; write label matchers as in PromQL without braces, such as cluster="eu-1"`, text, err)
	}
	return own, nil
}

// matchers returns those of the options, which are valid.
func (o Options) matchers() matchers {
	parsed, _ := parseMatchers(o.Matchers)
	return parsed
}

// in returns an expression of the collector with the matchers in all of its selectors.
func (m matchers) in(expression string) string {
	if len(m) == 0 {
		return expression
	}
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		// no input reaches an expression
		panic(fmt.Sprintf("collector: %q is no PromQL: %v", expression, err))
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, is := node.(*parser.VectorSelector); is {
			selector.LabelMatchers = append(selector.LabelMatchers, m...)
		}
		return nil
	})
	return parsed.String()
}
