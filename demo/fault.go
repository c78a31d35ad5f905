package demo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// FaultType is a type of injected fault.
type FaultType string

// The types of faults.
const (
	// Prometheus is down: it scrapes nothing and answers nothing
	FaultPrometheus FaultType = "prometheus"
	FaultScrape     FaultType = "scrape" // Prometheus answers, but its scrapes fail
	FaultScaler     FaultType = "wva"    // the scaler is killed, and restarts without its state
)

var faultTypes = []FaultType{FaultPrometheus, FaultScrape, FaultScaler}

// Fault is a fault that is injected for some time.
type Fault struct {
	Type     FaultType
	At       time.Duration // since the demo began, whole seconds
	Duration time.Duration // whole seconds, > 0
}

// ParseFault parses a fault such as "prometheus@20m+5m": its type, begin and duration.
func ParseFault(text string) (Fault, error) {
	faultType, times, found := strings.Cut(text, "@")
	begin, duration, foundToo := strings.Cut(times, "+")
	if !found || !foundToo {
		return Fault{}, fmt.Errorf("fault %q: write it as TYPE@BEGIN+DURATION, such as prometheus@20m+5m", text)
	}
	fault := Fault{Type: FaultType(faultType)}
	var errs []error
	if !slices.Contains(faultTypes, fault.Type) {
		errs = append(errs, fmt.Errorf("fault %q: type %q is unknown; it is one of %v", text, faultType, faultTypes))
	}
	for _, part := range []struct {
		name, text string
		into       *time.Duration
		least      time.Duration
	}{{"begin", begin, &fault.At, 0}, {"duration", duration, &fault.Duration, time.Second}} {
		d, err := time.ParseDuration(part.text)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("fault %q: %s %q is no duration; write it as 5m or 90s", text, part.name, part.text))
		case d < part.least || d%time.Second != 0:
			errs = append(errs, fmt.Errorf("fault %q: %s %v is not a whole number of seconds, at least %v", text, part.name, d, part.least))
		}
		*part.into = d
	}
	return fault, errors.Join(errs...)
}

// active reports whether a fault of a type is injected at a second.
func active(faults []Fault, faultType FaultType, second int) bool {
	return slices.ContainsFunc(faults, func(f Fault) bool {
		at := time.Duration(second) * time.Second
		return f.Type == faultType && f.At <= at && at < f.At+f.Duration
	})
}
