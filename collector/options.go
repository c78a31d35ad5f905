package collector

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/api"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/engine"
)

// Options are the address of Prometheus and the windows of the queries. Zero fields take their
// defaults.
type Options struct {
	// Address is the URL of Prometheus' HTTP API.
	Address string
	// RoundTripper sends the requests to Address. Default: client_golang's.
	RoundTripper http.RoundTripper

	// Interval is the distance between two instants of queries. Default 15 s, at least 1 s.
	Interval time.Duration
	// Lag is how far behind the present the instants are, so that scrapes of that instant have
	// arrived. Default 2 s; negative: none.
	Lag time.Duration
	// Timeout is the deadline of each query. Default 10 s; it must be below Interval.
	Timeout time.Duration
	// RetryAfter is the time after which a failed query may be sent again for the same instant.
	// Default 5 s.
	RetryAfter time.Duration
	// QueueTimeout is the deadline of the one query of Queues. Default 1 s.
	QueueTimeout time.Duration

	// Window is the latest window: rates are taken over it, doubled until it is as long as 3.5
	// scrape intervals, and at most over the peak window. Default 1 m.
	Window time.Duration
	// PeakWindow is the least window of the highest demand, and that of means. Default 5 m.
	PeakWindow time.Duration
	// IdleWindow is the window of the last use of a model: the longest retention of any model.
	// Default 10 m.
	IdleWindow time.Duration
	// LongWindow is the window of a pod's least latency and highest rates, and of the lengths of
	// requests. Default 1 h.
	LongWindow time.Duration
	// BudgetWindow is the window of the error budget. Default 1 h.
	BudgetWindow time.Duration
	// StaleAfter is the age from which a gauge is Stale. Default the larger of 1 m and four
	// intervals.
	StaleAfter time.Duration

	// SaturatedWaiting is the number of waiting requests from which on a pod is busy: fewer wait
	// for the next iteration only. Default 5.
	SaturatedWaiting float64

	// NamespaceLabel, PodLabel and ModelLabel name the labels of engine metrics. Defaults
	// namespace, pod, model_name.
	NamespaceLabel string
	PodLabel       string
	ModelLabel     string

	// Matchers are label matchers as in PromQL, without braces, that every series must meet: they
	// keep the series of other clusters out. Default: none.
	Matchers string

	// Registerer registers the collector's own metrics. Nil: they are registered nowhere.
	Registerer prometheus.Registerer
	// Logger logs each failed query. Nil: slog's default.
	Logger *slog.Logger

	// scaleDown is the window of the highest demand of one cycle: the peak window or longer.
	scaleDown time.Duration
	// shortScaleDown is the shorter one of models that have spent little of their error budget; 0
	// if there is none.
	shortScaleDown time.Duration
	// ttft and itl are the latency objectives of one cycle.
	ttft, itl []time.Duration
}

// Windows are those windows of one cycle that depend on the fleet. One that is shorter than that of
// the options is not used.
type Windows struct {
	// ScaleDown is the window of the highest demand, of its coverage and of the progress of pods;
	// at most the long window.
	ScaleDown time.Duration
	// ShortScaleDown is a shorter window of the highest rate. There is no query for it if it is
	// zero, or not below ScaleDown.
	ShortScaleDown time.Duration
	// Idle is the window of the last use of a model.
	Idle time.Duration
	// TTFT and ITL are the latency objectives of the fleet, sorted, each once. Requests are counted
	// in the buckets beside them; without any, latencies of requests are not asked for.
	TTFT, ITL []time.Duration
	// Began is when pods began to serve. Pods that are not in it are older than the peak window.
	Began map[Pod]time.Time
}

// Pod names a pod.
type Pod struct{ Namespace, Name string }

// cycleWindows are the windows and objectives of a cycle.
type cycleWindows struct {
	scaleDown, shortScaleDown, idle time.Duration
	objectives                      string
}

// over returns the options of a cycle with the windows.
func (o Options) over(w Windows) Options {
	o.scaleDown = min(max(w.ScaleDown, o.PeakWindow), o.LongWindow)
	o.shortScaleDown = w.ShortScaleDown
	o.IdleWindow = max(w.Idle, o.IdleWindow)
	o.ttft, o.itl = w.TTFT, w.ITL
	return o
}

// windows returns the windows of a cycle.
func (o Options) windows() cycleWindows {
	return cycleWindows{o.scaleDown, o.shortScaleDown, o.IdleWindow, fmt.Sprint(o.ttft, o.itl)}
}

const (
	// minScrapes is the number of samples that a window must have for the rate of an older pod.
	minScrapes = 3
	// fullScrapes is the number of samples of a window if no scrape fails.
	fullScrapes = 4
	// history is the time before the window in which a series must be seen for it not to be born
	// within the window.
	history = 30 * time.Minute
	// silentAfter is how long a pod without metrics has a row: after it, it counts as silent.
	silentAfter = 10 * time.Minute
	// maxSteps is the limit of the evaluations of a subquery.
	maxSteps = 60
)

func (o Options) withDefaults() Options {
	if o.RoundTripper == nil {
		o.RoundTripper = api.DefaultRoundTripper
	}
	defaultTo(&o.Interval, 15*time.Second)
	defaultTo(&o.Lag, 2*time.Second)
	o.Lag = max(o.Lag, 0)
	defaultTo(&o.Timeout, 10*time.Second)
	defaultTo(&o.RetryAfter, 5*time.Second)
	defaultTo(&o.QueueTimeout, time.Second)
	defaultTo(&o.Window, time.Minute)
	defaultTo(&o.PeakWindow, 5*time.Minute)
	o.scaleDown = o.PeakWindow
	defaultTo(&o.IdleWindow, 10*time.Minute)
	defaultTo(&o.LongWindow, time.Hour)
	defaultTo(&o.BudgetWindow, time.Hour)
	defaultTo(&o.StaleAfter, max(time.Minute, 4*o.Interval))
	defaultTo(&o.SaturatedWaiting, 5)
	defaultTo(&o.NamespaceLabel, "namespace")
	defaultTo(&o.PodLabel, "pod")
	defaultTo(&o.ModelLabel, engine.ModelLabel)
	defaultTo(&o.Logger, slog.Default())
	return o
}

func defaultTo[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate reports every invalid option at once. The defaults are set.
func (o Options) validate() error {
	var problems []error
	invalid := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if o.Address == "" {
		invalid("the address of Prometheus is missing; set it to the URL of its HTTP API")
	}
	if o.Interval < time.Second || o.Interval%time.Millisecond != 0 {
		invalid("interval %s: set it to at least 1s, in whole milliseconds", o.Interval)
	}
	if o.Timeout <= 0 || o.Timeout >= o.Interval {
		invalid("query timeout %s: set it above zero and below the interval of %s", o.Timeout, o.Interval)
	}
	for _, window := range []struct {
		name         string
		length, over time.Duration
	}{
		{"latest window", o.Window, fullScrapes * time.Second},
		{"peak window", o.PeakWindow, o.Window},
		{"idle window", o.IdleWindow, o.Window},
		{"long window", o.LongWindow, o.PeakWindow},
		{"error budget window", o.BudgetWindow, o.Window},
	} {
		if window.length < window.over || window.length%time.Millisecond != 0 {
			invalid("%s %s: set it to at least %s, in whole milliseconds", window.name, window.length, window.over)
		}
	}
	if o.RetryAfter < 0 || o.QueueTimeout < 0 || o.StaleAfter < 0 {
		invalid("retry %s, queue timeout %s, stale after %s: none may be negative", o.RetryAfter, o.QueueTimeout, o.StaleAfter)
	}
	labels := []string{o.NamespaceLabel, o.PodLabel, o.ModelLabel}
	for i, label := range labels {
		if !model.LegacyValidation.IsValidLabelName(label) || label == labels[(i+1)%len(labels)] {
			invalid("label name %q: use letters, digits and underscores, and a name of its own for each label", label)
		}
	}
	_, err := parseMatchers(o.Matchers)
	return errors.Join(append(problems, err)...)
}

// step returns the distance between two evaluations of a subquery over the window: a multiple of
// the interval, such that there are at most maxSteps of them.
func (o Options) step(window time.Duration) time.Duration {
	atLeast := (window + maxSteps - 1) / maxSteps
	return max(1, (atLeast+o.Interval-1)/o.Interval) * o.Interval
}

// gap is the longest distance between two samples that counts as covered.
func (o Options) gap() time.Duration { return o.Window / 2 }

// floorTime returns the last multiple of the step since 1970 that is not after t.
func floorTime(t time.Time, step time.Duration) time.Time {
	nanoseconds := t.UnixNano()
	rest := nanoseconds % int64(step)
	if rest < 0 {
		rest += int64(step)
	}
	return time.Unix(0, nanoseconds-rest).UTC()
}
