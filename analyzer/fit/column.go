package fit

import (
	"fmt"
	"slices"
	"strings"
)

// column is a column that ReadTable reads.
type column struct {
	name     string
	aliases  []string
	optional bool
	units    bool // its name ends in a unit of time, or in none for seconds
}

// position is the index of a column in the header, and the factor on its figures.
type position struct {
	known  bool
	header string
	index  int
	scale  float64
}

// find returns the position of the column in the header.
func (c column) find(header []string) (position, error) {
	var found []position
	names := c.names()
	for i, text := range header {
		text = strings.ToLower(strings.TrimSpace(text))
		if scale, ok := names[text]; ok {
			found = append(found, position{known: true, header: text, index: i, scale: scale})
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return position{}, fmt.Errorf("the header has %d columns for %s, %s and %s; keep one", len(found), c.name, found[0].header, found[1].header)
	case c.optional:
		return position{}, nil
	}
	var wanted []string
	for name := range names {
		wanted = append(wanted, name)
	}
	slices.Sort(wanted)
	return position{}, fmt.Errorf("the header has no column for %s; name one %s", c.name, strings.Join(wanted, " or "))
}

// names returns the names of the column in lower case, with the factor that converts its figures to
// milliseconds.
func (c column) names() map[string]float64 {
	names := make(map[string]float64)
	for _, name := range append([]string{c.name}, c.aliases...) {
		if !c.units {
			names[name] = 1
			continue
		}
		for unit, scale := range scales() {
			names[name+"_"+string(unit)] = scale
		}
		names[name] = scales()[Seconds]
	}
	return names
}
