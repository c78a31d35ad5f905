package promstore

import (
	"slices"
	"sync"

	"github.com/prometheus/prometheus/promql/parser"
)

// mostParsed bounds the parsed expressions that are kept.
const mostParsed = 1000

// parseCache parses expressions once. The engine writes into an expression that it evaluates, so
// each query gets a copy.
type parseCache struct {
	parser.Parser

	mu     sync.Mutex
	parsed map[string]parser.Expr
}

func newParseCache() *parseCache {
	return &parseCache{Parser: parser.NewParser(parser.Options{}), parsed: make(map[string]parser.Expr)}
}

// ParseExpr returns an expression of its own to each caller.
func (c *parseCache) ParseExpr(input string) (parser.Expr, error) {
	c.mu.Lock()
	known, found := c.parsed[input]
	c.mu.Unlock()
	if found {
		copied, _ := copyOf(known)
		return copied, nil
	}
	expr, err := c.Parser.ParseExpr(input)
	if err != nil {
		return nil, err
	}
	if copied, complete := copyOf(expr); complete {
		c.mu.Lock()
		if len(c.parsed) >= mostParsed {
			clear(c.parsed)
		}
		c.parsed[input] = copied
		c.mu.Unlock()
	}
	return expr, nil
}

// copyOf returns a copy of an expression. It reports false if a part cannot be copied.
func copyOf(expr parser.Expr) (parser.Expr, bool) {
	switch e := expr.(type) {
	case nil:
		return nil, true
	case *parser.NumberLiteral:
		c := *e
		return &c, true
	case *parser.StringLiteral:
		c := *e
		return &c, true
	case *parser.VectorSelector:
		c := *e
		c.LabelMatchers = slices.Clone(e.LabelMatchers)
		return &c, e.OriginalOffsetExpr == nil
	case *parser.MatrixSelector:
		c := *e
		complete := copyInto(&c.VectorSelector, e.VectorSelector)
		return &c, complete && e.RangeExpr == nil
	case *parser.SubqueryExpr:
		c := *e
		complete := copyInto(&c.Expr, e.Expr)
		return &c, complete && e.RangeExpr == nil && e.StepExpr == nil && e.OriginalOffsetExpr == nil
	case *parser.ParenExpr:
		c := *e
		complete := copyInto(&c.Expr, e.Expr)
		return &c, complete
	case *parser.UnaryExpr:
		c := *e
		complete := copyInto(&c.Expr, e.Expr)
		return &c, complete
	default:
		return copyOfSeveral(expr)
	}
}

// copyOfSeveral is copyOf for expressions that have more than one part.
func copyOfSeveral(expr parser.Expr) (parser.Expr, bool) {
	switch e := expr.(type) {
	case *parser.AggregateExpr:
		c := *e
		c.Grouping = slices.Clone(e.Grouping)
		inner, param := copyInto(&c.Expr, e.Expr), copyInto(&c.Param, e.Param)
		return &c, inner && param
	case *parser.BinaryExpr:
		c := *e
		if e.VectorMatching != nil {
			matching := *e.VectorMatching
			matching.MatchingLabels, matching.Include = slices.Clone(matching.MatchingLabels), slices.Clone(matching.Include)
			c.VectorMatching = &matching
		}
		left, right := copyInto(&c.LHS, e.LHS), copyInto(&c.RHS, e.RHS)
		return &c, left && right
	case *parser.Call:
		c := *e
		c.Args = make(parser.Expressions, len(e.Args))
		complete := true
		for i := range e.Args {
			complete = copyInto(&c.Args[i], e.Args[i]) && complete
		}
		return &c, complete
	default:
		return nil, false
	}
}

func copyInto(into *parser.Expr, expr parser.Expr) (complete bool) {
	*into, complete = copyOf(expr)
	return complete
}
