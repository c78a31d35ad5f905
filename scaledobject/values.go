package scaledobject

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/wva-project/wva/fleet"
)

// complaint is what is wrong with a value, and what to do about it.
type complaint struct{ problem, remedy string }

func textKey[T ~string](name string, at func(*fleet.Variant) *T) row {
	r := row{Key: Key{Name: name, Type: TypeText}}
	r.Allowed = fmt.Sprintf("printable text of at most %d bytes", maxText)
	r.read = func(v *fleet.Variant, value string) *complaint {
		if c := checkText(value); c != nil {
			return c
		}
		*at(v) = T(value)
		return nil
	}
	r.write = func(v fleet.Variant) string { return string(*at(&v)) }
	return r
}

// choiceKey is a key of a few values; the first is the default.
func choiceKey[T ~string](name string, at func(*fleet.Variant) *T, options ...T) row {
	names := make([]string, len(options))
	for i, option := range options {
		names[i] = string(option)
	}
	r := row{Key: Key{Name: name, Type: TypeChoice, Default: names[0], Example: names[len(names)-1]}}
	r.Allowed = strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
	r.read = func(v *fleet.Variant, value string) *complaint {
		for _, option := range options {
			if value == string(option) {
				*at(v) = option
				return nil
			}
		}
		if near, ok := nearest(value, names); ok {
			return &complaint{"is none of the choices", "did you mean " + near + "?"}
		}
		return &complaint{"is none of the choices", "write one of them or remove the key"}
	}
	r.write = func(v fleet.Variant) string { return string(*at(&v)) }
	return r
}

func countKey(name string, highest int, at func(*fleet.Variant) *int) row {
	r := row{Key: Key{Name: name, Type: TypeCount}}
	r.Allowed = fmt.Sprintf("a whole number from 1 to %d", highest)
	r.read = func(v *fleet.Variant, value string) *complaint {
		remedy := `write it in digits, such as "1"`
		if c := checkText(value); c != nil {
			return c
		}
		n, err := strconv.Atoi(value)
		switch {
		case errors.Is(err, strconv.ErrRange), err == nil && (n < 1 || n > highest):
			return &complaint{"is out of range", remedy}
		case err != nil || value[0] == '+':
			return &complaint{"is not a whole number", remedy}
		}
		*at(v) = n
		return nil
	}
	r.write = func(v fleet.Variant) string { return strconv.Itoa(*at(&v)) }
	return r
}

// interval is the numbers that a key allows; open excludes both ends.
type interval struct {
	lowest, highest float64
	open            bool
}

func (i interval) holds(x float64) bool {
	if i.open {
		return x > i.lowest && x < i.highest
	}
	return x >= i.lowest && x <= i.highest
}

func (i interval) String() string {
	lowest, highest := formatNumber(i.lowest), strconv.FormatFloat(i.highest, 'f', -1, 64)
	if i.open {
		return fmt.Sprintf("a number above %s and below %s", lowest, highest)
	}
	return fmt.Sprintf("a number from %s to %s", lowest, highest)
}

// numberKey is a key of a decimal number; hint, where there is one, returns a better remedy for a value that is refused.
func numberKey(name string, allowed interval, hint func(string) (string, bool), at func(*fleet.Variant) *float64) row {
	r := row{Key: Key{Name: name, Type: TypeNumber, Allowed: allowed.String()}}
	r.read = func(v *fleet.Variant, value string) *complaint {
		x, c := parseNumber(value)
		if c == nil && !allowed.holds(x) {
			c = &complaint{"is out of range", "write a number in that range"}
		}
		if c == nil {
			*at(v) = x
			return nil
		}
		if hint != nil {
			if remedy, ok := hint(value); ok {
				c.remedy = remedy
			}
		}
		return c
	}
	r.write = func(v fleet.Variant) string { return formatNumber(*at(&v)) }
	return r
}

// parseNumber reads a finite decimal number. Go reads more ("0x1p4", "1_0", "inf") than people should have to know.
func parseNumber(value string) (float64, *complaint) {
	if c := checkText(value); c != nil {
		return 0, c
	}
	x, err := strconv.ParseFloat(value, 64)
	switch {
	case strings.Trim(value, "0123456789.eE+-") != "":
		return 0, &complaint{"is not a decimal number", `write digits only, such as "0.5"`}
	case errors.Is(err, strconv.ErrRange):
		return 0, &complaint{"is out of range", "write a number that is not as large"}
	case err != nil:
		return 0, &complaint{"is not a decimal number", `write digits only, such as "0.5"`}
	}
	return x + 0, nil // adding zero turns -0 into 0
}

// shareHint returns the remedy for a share that was written as "95", "95%" or "p95".
func shareHint(value string) (string, bool) {
	percent, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSuffix(value, "%"), "p"), 64)
	if err != nil || percent <= 1 || percent >= 100 {
		return "", false
	}
	return fmt.Sprintf("write it as a share, %q", strconv.FormatFloat(percent/100, 'g', 8, 64)), true
}

func formatNumber(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func durationKey(name string, at func(*fleet.Variant) *time.Duration) row {
	r := row{Key: Key{Name: name, Type: TypeDuration}}
	r.Allowed = fmt.Sprintf("a duration above 0 and at most %.0fh, with its unit", maxDuration.Hours())
	r.read = func(v *fleet.Variant, value string) *complaint {
		if c := checkText(value); c != nil {
			return c
		}
		d, err := time.ParseDuration(value)
		switch {
		case err != nil:
			return notDuration(value)
		case d <= 0 || d > maxDuration:
			return &complaint{"is out of range", `write it as "500ms" or "1.5s", or remove the key for no limit`}
		}
		*at(v) = d
		return nil
	}
	r.write = func(v fleet.Variant) string {
		if d := *at(&v); d != 0 {
			return d.String()
		}
		return ""
	}
	return r
}

// notDuration returns the complaint about text that is not a duration; most often it is a number whose unit is missing.
func notDuration(value string) *complaint {
	const longest = 12
	if _, c := parseNumber(value); c != nil {
		return &complaint{"is not a duration", `write it as "500ms" or "1.5s"`}
	}
	if len(value) > longest {
		return &complaint{"has no unit", `add one, as in "500ms" or "1.5s"`}
	}
	return &complaint{"has no unit", fmt.Sprintf("add one: %q or %q", value+"ms", value+"s")}
}

// checkText refuses what no value may be, whatever its type.
func checkText(value string) *complaint {
	switch {
	case value == "":
		return &complaint{"is empty", "give it a value or remove the key"}
	case len(value) > maxText:
		return &complaint{fmt.Sprintf("is %d bytes long", len(value)), "shorten it"}
	case !utf8.ValidString(value):
		return &complaint{"is not valid UTF-8", "write it anew as plain text"}
	case strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }):
		return &complaint{"holds a character that is not printable", "remove it"}
	case strings.TrimSpace(value) != value, strings.ContainsFunc(value, isOddSpace):
		return &complaint{"holds white space that does not belong there", "remove the spaces around it, and tabs and line breaks within"}
	}
	return nil
}

// isOddSpace reports white space that is not the plain blank.
func isOddSpace(r rune) bool { return r != ' ' && unicode.IsSpace(r) }

// isName reports whether the API server takes a name for an object: a DNS subdomain.
func isName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	return name != "" && len(name) <= nameLimit && strings.Trim(name, letters+"-.") == "" &&
		strings.IndexByte(letters, name[0]) >= 0 && strings.IndexByte(letters, name[len(name)-1]) >= 0
}
