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

// problemReason returns the reason of a problem.
func problemReason(code fleet.Code, p fleet.Problem) fleet.Reason {
	return fleet.Reason{Code: code, Text: p.Text}.With(fleet.DetailRemedy, p.Remedy)
}

// invalidDefinition returns the reason of validation errors, at least one. The first is the line of
// the reason, the others are its cause.
func invalidDefinition(problems []fleet.Problem) fleet.Reason {
	why := problemReason(fleet.CodeInvalidDefinition, problems[0])
	if len(problems) == 1 {
		return why
	}
	var more []string
	for _, p := range problems[1:] {
		more = append(more, p.String())
	}
	why.Text = fmt.Sprintf("%d validation errors, the first: %s", len(problems), why.Text)
	return why.With(fleet.DetailCause, strings.Join(more, ". "))
}
