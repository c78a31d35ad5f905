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
	fact, remedy := text, ""
	if at := semicolon(text); at >= 0 {
		fact, remedy = text[:at], text[at+len("; "):]
	}
	return fleet.Reason{Code: code, Text: fact}.With(fleet.DetailRemedy, remedy)
}

// semicolon returns the place of the first "; " that is not part of a quoted value, which a tenant
// writes; -1 if there is none.
func semicolon(text string) int {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case !quoted && strings.HasPrefix(text[i:], "; "):
			return i
		}
	}
	return -1
}
