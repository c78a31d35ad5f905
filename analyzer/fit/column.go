package fit

import (
	"fmt"
	"slices"
	"strings"
)

// column is one that ReadTable looks for.
type column struct {
	name     string
	aliases  []string
	optional bool
	units    bool // its name ends in a unit of time: _ms, _s, or none for seconds
}

// place is where a column stands, and what its figures are multiplied by.
type place struct {
	known  bool
	header string
	index  int
	scale  float64
}

// find returns where the header has the column.
func (c column) find(header []string) (place, error) {
	var found []place
	names := c.names()
	for i, text := range header {
		text = strings.ToLower(strings.TrimSpace(text))
		if scale, ok := names[text]; ok {
			found = append(found, place{known: true, header: text, index: i, scale: scale})
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return place{}, fmt.Errorf("the header has %d columns for %s, %s and %s; leave one", len(found), c.name, found[0].header, found[1].header)
	case c.optional:
		return place{}, nil
	}
	var wanted []string
	for name := range names {
		wanted = append(wanted, name)
	}
	slices.Sort(wanted)
	return place{}, fmt.Errorf("the header has no column for %s; name one %s", c.name, strings.Join(wanted, " or "))
}

// names returns what the column may be called in lower case, with the factor that turns its figures into milliseconds.
func (c column) names() map[string]float64 {
	names := make(map[string]float64)
	for _, name := range append([]string{c.name}, c.aliases...) {
		if !c.units {
			names[name] = 1
			continue
		}
		names[name+"_ms"], names[name+"_s"], names[name] = 1, 1000, 1000
	}
	return names
}
