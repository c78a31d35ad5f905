package planner

import (
	"fmt"
	"strings"

	"github.com/wva-project/wva/fleet"
)

// reason returns a reason of one line: fact, limit, action, with numbers and units first.
func reason(code fleet.Code, format string, args ...any) fleet.Reason {
	return fleet.Reason{Code: code, Text: fmt.Sprintf(format, args...)}
}

// factAndRemedy returns the reason of a text that ends with its remedy after a semicolon.
func factAndRemedy(code fleet.Code, text string) fleet.Reason {
	fact, remedy, _ := strings.Cut(text, "; ")
	return fleet.Reason{Code: code, Text: fact}.With(fleet.DetailRemedy, remedy)
}
