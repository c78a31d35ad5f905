package scaledobject

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/wva-project/wva/fleet"
)

// problem is why a value is invalid, as the end of a sentence, and the remedy.
type problem struct{ text, remedy string }

func textKey[T ~string](name string, at func(*fleet.Variant) *T) row {
	r := row{Key: Key{Name: name, Type: TypeText}}
	r.Allowed = fmt.Sprintf("printable text of at most %d bytes", maxText)
	r.read = func(v *fleet.Variant, value string) *problem {
		if p := checkText(value); p != nil {
			return p
		}
		*at(v) = T(value)
		return nil
	}
	r.write = func(v fleet.Variant) string { return string(*at(&v)) }
	return r
}

// namesKey is a key of several names, separated by commas.
func namesKey(name string, at func(*fleet.Variant) *[]string) row {
	r := row{Key: Key{Name: name, Type: TypeNames}}
	r.Allowed = fmt.Sprintf("at most %d names, separated by commas, each printable text of at most %d bytes", maxNames, maxText)
	r.read = func(v *fleet.Variant, value string) *problem {
		if len(value) > maxNames*(maxText+1) {
			return &problem{fmt.Sprintf("is %d bytes long", len(value)), "shorten it"}
		}
		names := strings.Split(value, ",")
		if len(names) > maxNames {
			return &problem{fmt.Sprintf("has %d names", len(names)), "remove some of them"}
		}
		for _, each := range names {
			if p := checkText(each); p != nil {
				return p
			}
		}
		slices.Sort(names)
		*at(v) = slices.Compact(names)
		return nil
	}
	r.write = func(v fleet.Variant) string { return strings.Join(*at(&v), ",") }
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
	r.read = func(v *fleet.Variant, value string) *problem {
		for _, option := range options {
			if value == string(option) {
				*at(v) = option
				return nil
			}
		}
		if near, ok := fleet.Nearest(value, names); ok {
			return &problem{"is not one of the choices", "did you mean " + near + "?"}
		}
		return &problem{"is not one of the choices", "write one of them or remove the key"}
	}
	r.write = func(v fleet.Variant) string { return string(*at(&v)) }
	return r
}

func countKey(name string, highest int, at func(*fleet.Variant) *int) row {
	r := row{Key: Key{Name: name, Type: TypeCount}}
	r.Allowed = fmt.Sprintf("a whole number from 1 to %d", highest)
	r.read = func(v *fleet.Variant, value string) *problem {
		remedy := `write it in digits, such as "1"`
		if p := checkText(value); p != nil {
			return p
		}
		n, err := strconv.Atoi(value)
		switch {
		case errors.Is(err, strconv.ErrRange), err == nil && (n < 1 || n > highest):
			return &problem{"is out of range", remedy}
		case err != nil || value[0] == '+':
			return &problem{"is not a whole number", remedy}
		}
		*at(v) = n
		return nil
	}
	r.write = func(v fleet.Variant) string { return strconv.Itoa(*at(&v)) }
	return r
}

// interval is the range of valid numbers of a key; open excludes both ends.
type interval struct {
	lowest, highest float64
	open            bool
}

func (i interval) contains(x float64) bool {
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

// numberKey is a key of a decimal number. hint, if not nil, returns a better remedy for an invalid
// value.
func numberKey(name string, allowed interval, hint func(string) (string, bool), at func(*fleet.Variant) *float64) row {
	r := row{Key: Key{Name: name, Type: TypeNumber, Allowed: allowed.String()}}
	r.read = func(v *fleet.Variant, value string) *problem {
		x, p := parseNumber(value)
		if p == nil && !allowed.contains(x) {
			p = &problem{"is out of range", "write a number in that range"}
		}
		if p == nil {
			*at(v) = x
			return nil
		}
		if hint != nil {
			if remedy, ok := hint(value); ok {
				p.remedy = remedy
			}
		}
		return p
	}
	r.write = func(v fleet.Variant) string { return formatNumber(*at(&v)) }
	return r
}

// parseNumber reads a finite decimal number. Go accepts other forms too ("0x1p4", "1_0", "inf"),
// which are invalid here.
func parseNumber(value string) (float64, *problem) {
	if p := checkText(value); p != nil {
		return 0, p
	}
	x, err := strconv.ParseFloat(value, 64)
	switch {
	case strings.Trim(value, "0123456789.eE+-") != "":
		return 0, &problem{"is not a decimal number", `write digits only, such as "0.5"`}
	case errors.Is(err, strconv.ErrRange):
		return 0, &problem{"is out of range", "write a smaller number"}
	case err != nil:
		return 0, &problem{"is not a decimal number", `write digits only, such as "0.5"`}
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

// span is the range of valid durations of a key, as people write it, with an example of two values.
type span struct {
	shortest, longest time.Duration
	allowed, example  string
	remove            string // the effect of removing the key
}

func durationKey(name string, allowed span, at func(*fleet.Variant) *time.Duration) row {
	r := row{Key: Key{Name: name, Type: TypeDuration, Allowed: allowed.allowed}}
	r.read = func(v *fleet.Variant, value string) *problem {
		if p := checkText(value); p != nil {
			return p
		}
		d, err := time.ParseDuration(value)
		switch {
		case err != nil:
			return notDuration(value, allowed.example)
		case d < allowed.shortest || d > allowed.longest:
			return &problem{"is out of range", "write it as " + allowed.example + ", or remove the key " + allowed.remove}
		}
		*at(v) = d
		return nil
	}
	r.write = func(v fleet.Variant) string {
		if d := *at(&v); d != 0 {
			return formatDuration(d)
		}
		return ""
	}
	return r
}

// formatDuration returns a duration without the zeros that time.Duration ends with: 10m instead of
// 10m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// notDuration returns the problem of text that is not a duration. Most often it is a number without
// a unit.
func notDuration(value, example string) *problem {
	const longest = 12
	if _, p := parseNumber(value); p != nil {
		return &problem{"is not a duration", "write it as " + example}
	}
	if len(value) > longest {
		return &problem{"has no unit", "add one, as in " + example}
	}
	units := [2]string{"ms", "s"}
	if strings.Contains(example, "h") {
		units = [2]string{"s", "m"}
	}
	return &problem{"has no unit", fmt.Sprintf("add one: %q or %q", value+units[0], value+units[1])}
}

// checkText returns the problem of text that is invalid for every type of value; nil if there is
// none.
func checkText(value string) *problem {
	switch {
	case value == "":
		return &problem{"is empty", "give it a value or remove the key"}
	case len(value) > maxText:
		return &problem{fmt.Sprintf("is %d bytes long", len(value)), "shorten it"}
	case !utf8.ValidString(value):
		return &problem{"is not valid UTF-8", "write it as plain text"}
	case strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }):
		return &problem{"contains a character that is not printable", "remove it"}
	case strings.TrimSpace(value) != value, strings.ContainsFunc(value, isOddSpace):
		return &problem{"contains white space that is not allowed", "remove spaces around it, and tabs and line breaks inside it"}
	}
	return nil
}

// isOddSpace reports white space other than the plain space.
func isOddSpace(r rune) bool { return r != ' ' && unicode.IsSpace(r) }

// isName reports whether the API server accepts the name of an object: a DNS subdomain.
func isName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	return name != "" && len(name) <= nameLimit && strings.Trim(name, letters+"-.") == "" &&
		strings.IndexByte(letters, name[0]) >= 0 && strings.IndexByte(letters, name[len(name)-1]) >= 0
}
