package demo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// FaultKind is something that breaks on purpose.
type FaultKind string

// The kinds of faults.
const (
	FaultPrometheus FaultKind = "prometheus" // Prometheus is down: it scrapes nothing and answers nothing
	FaultScrape     FaultKind = "scrape"     // Prometheus answers, but its scrapes fail
	FaultScaler     FaultKind = "wva"        // the scaler is killed, and starts anew without memory
)

var faultKinds = []FaultKind{FaultPrometheus, FaultScrape, FaultScaler}

// Fault is something that is broken for a while.
type Fault struct {
	Kind     FaultKind
	At       time.Duration // since the demo began, whole seconds
	Duration time.Duration // whole seconds, > 0
}

// ParseFault reads a fault as "prometheus@20m+5m": the kind, when it begins, how long it lasts.
func ParseFault(text string) (Fault, error) {
	kind, when, found := strings.Cut(text, "@")
	begin, lasts, foundToo := strings.Cut(when, "+")
	if !found || !foundToo {
		return Fault{}, fmt.Errorf("fault %q: write it as KIND@BEGIN+DURATION, such as prometheus@20m+5m", text)
	}
	fault := Fault{Kind: FaultKind(kind)}
	var faults []error
	if !slices.Contains(faultKinds, fault.Kind) {
		faults = append(faults, fmt.Errorf("fault %q: kind %q is unknown; it is one of %v", text, kind, faultKinds))
	}
	for _, part := range []struct {
		name, text string
		into       *time.Duration
		least      time.Duration
	}{{"begin", begin, &fault.At, 0}, {"duration", lasts, &fault.Duration, time.Second}} {
		d, err := time.ParseDuration(part.text)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("fault %q: %s %q is no duration; write it as 5m or 90s", text, part.name, part.text))
		case d < part.least || d%time.Second != 0:
			faults = append(faults, fmt.Errorf("fault %q: %s %v is not a whole number of seconds from %v up", text, part.name, d, part.least))
		}
		*part.into = d
	}
	return fault, errors.Join(faults...)
}

// active reports whether a kind is broken at a second.
func active(faults []Fault, kind FaultKind, second int) bool {
	return slices.ContainsFunc(faults, func(f Fault) bool {
		at := time.Duration(second) * time.Second
		return f.Kind == kind && f.At <= at && at < f.At+f.Duration
	})
}
