package scaledobject

import (
	"fmt"
	"strings"

	"github.com/wva-project/wva/fleet"
)

// costKey is a key of the figures of an engine's cost, such as "alpha=6,beta=0.03": the first has to be there.
func costKey(name string, at func(*fleet.Variant) *fleet.EngineCost) row {
	figures := fleet.CostFigures()
	r := row{Key: Key{Name: name, Type: TypeFigures}}
	r.Allowed = fmt.Sprintf("%s=N in milliseconds, of which only %s is required", strings.Join(figureNames(figures), "=N,"), figures[0].Name)
	r.read = func(v *fleet.Variant, value string) *complaint {
		cost, c := readCost(value)
		if c == nil {
			*at(v) = cost
		}
		return c
	}
	r.write = func(v fleet.Variant) string { return at(&v).String() }
	return r
}

func figureNames(figures []fleet.CostFigure) []string {
	names := make([]string, len(figures))
	for i, figure := range figures {
		names[i] = figure.Name
	}
	return names
}

// readCost reads figures that are separated by commas. A figure that is not there is zero.
func readCost(value string) (fleet.EngineCost, *complaint) {
	var cost fleet.EngineCost
	if c := checkText(value); c != nil {
		return cost, c
	}
	given := make(map[string]bool)
	for part := range strings.SplitSeq(value, ",") {
		name, number, assigns := strings.Cut(strings.TrimSpace(part), "=")
		figure, c := figureOf(name)
		switch {
		case !assigns:
			return cost, &complaint{"holds " + quoted(name) + ", which is not name=number", "write it as in alpha=6.07,beta=0.034"}
		case c != nil:
			return cost, c
		case given[name]:
			return cost, &complaint{"gives " + name + " twice", "remove one of the two"}
		}
		given[name] = true
		if c := readFigure(figure, number, &cost); c != nil {
			return cost, c
		}
	}
	if first := fleet.CostFigures()[0].Name; !given[first] {
		return cost, &complaint{"does not give " + first, "add the milliseconds of an iteration with an empty batch, as in " + first + "=6.07"}
	}
	return cost, nil
}

func figureOf(name string) (fleet.CostFigure, *complaint) {
	figures := fleet.CostFigures()
	for _, figure := range figures {
		if figure.Name == name {
			return figure, nil
		}
	}
	names := figureNames(figures)
	remedy := "there is " + strings.Join(names, ", ")
	if near, ok := nearest(name, names); ok {
		remedy = "did you mean " + near + "?"
	}
	return fleet.CostFigure{}, &complaint{"holds the unknown figure " + quoted(name), remedy}
}

func readFigure(figure fleet.CostFigure, text string, cost *fleet.EngineCost) *complaint {
	if text == "" {
		return &complaint{"gives " + figure.Name + " no value", "write it behind the sign, as in " + figure.Name + "=1.5"}
	}
	x, c := parseNumber(text)
	if c != nil {
		return &complaint{"gives " + figure.Name + " a value that " + c.problem, c.remedy}
	}
	if allowed := (interval{lowest: figure.Lowest, highest: figure.Highest}); !allowed.holds(x) {
		return &complaint{"gives " + figure.Name + " a value that is out of range", "write " + allowed.String() + ", in milliseconds"}
	}
	*figure.Of(cost) = x
	return nil
}
