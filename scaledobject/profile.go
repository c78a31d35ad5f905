package scaledobject

import (
	"fmt"
	"strings"

	"github.com/wva-project/wva/fleet"
)

// profileKey is a key of the parameters of an engine's profile, such as "alpha=6,beta=0.03". The
// first parameter is required.
func profileKey(name string, at func(*fleet.Variant) *fleet.EngineCost) row {
	figures := fleet.CostFigures()
	r := row{Key: Key{Name: name, Type: TypeFigures}}
	r.Allowed = fmt.Sprintf("%s=N in milliseconds, of which only %s is required", strings.Join(figureNames(figures), "=N,"), figures[0].Name)
	r.read = func(v *fleet.Variant, value string) *problem {
		cost, p := readCost(value)
		if p == nil {
			*at(v) = cost
		}
		return p
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

// readCost reads figures that are separated by commas. A figure that is missing is zero.
func readCost(value string) (fleet.EngineCost, *problem) {
	var cost fleet.EngineCost
	if p := checkText(value); p != nil {
		return cost, p
	}
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(value, ",") {
		name, number, assigns := strings.Cut(strings.TrimSpace(part), "=")
		figure, p := figureOf(name)
		switch {
		case !assigns:
			return cost, &problem{"contains " + quoted(name) + ", which is not name=number", "write it as in alpha=6.07,beta=0.034"}
		case p != nil:
			return cost, p
		case seen[name]:
			return cost, &problem{"contains " + name + " twice", "remove one of the two"}
		}
		seen[name] = true
		if p := readFigure(figure, number, &cost); p != nil {
			return cost, p
		}
	}
	if first := fleet.CostFigures()[0].Name; !seen[first] {
		return cost, &problem{"does not contain " + first, "add the milliseconds of an iteration with an empty batch, as in " + first + "=6.07"}
	}
	return cost, nil
}

func figureOf(name string) (fleet.CostFigure, *problem) {
	figures := fleet.CostFigures()
	for _, figure := range figures {
		if figure.Name == name {
			return figure, nil
		}
	}
	names := figureNames(figures)
	remedy := "write one of " + strings.Join(names, ", ")
	if near, ok := fleet.Nearest(name, names); ok {
		remedy = "did you mean " + near + "?"
	}
	return fleet.CostFigure{}, &problem{"contains the unknown name " + quoted(name), remedy}
}

func readFigure(figure fleet.CostFigure, text string, cost *fleet.EngineCost) *problem {
	if text == "" {
		return &problem{"has no value for " + figure.Name, "write it after the equals sign, as in " + figure.Name + "=1.5"}
	}
	x, p := parseNumber(text)
	if p != nil {
		return &problem{"has a value for " + figure.Name + " that " + p.text, p.remedy}
	}
	if allowed := (interval{lowest: figure.Lowest, highest: figure.Highest}); !allowed.contains(x) {
		return &problem{"has a value for " + figure.Name + " that is out of range", "write " + allowed.String() + ", in " + figure.Unit}
	}
	*figure.Of(cost) = x
	return nil
}
