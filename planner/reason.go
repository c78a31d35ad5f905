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

// invalidDefinition returns the reason of validation errors, one a line, each with its remedy after
// a semicolon. The first is the line of the reason, the others are its cause.
func invalidDefinition(text string) fleet.Reason {
	lines := strings.Split(text, "\n")
	why := factAndRemedy(fleet.CodeInvalidDefinition, lines[0])
	if more := lines[1:]; len(more) > 0 {
		why.Text = fmt.Sprintf("%d validation errors, the first: %s", len(lines), why.Text)
		why = why.With(fleet.DetailCause, strings.Join(more, ". "))
	}
	return why
}

// factAndRemedy returns the reason of a text that ends with its remedy after a semicolon.
func factAndRemedy(code fleet.Code, text string) fleet.Reason {
	fact, remedy, _ := strings.Cut(text, "; ")
	return fleet.Reason{Code: code, Text: fact}.With(fleet.DetailRemedy, remedy)
}
