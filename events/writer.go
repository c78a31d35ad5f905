package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	recordutil "k8s.io/client-go/tools/record/util"

	"github.com/wva-project/wva/fleet"
)

// Limits of writing events. A fleet of thousands may have an event for each variant at once. The
// events beyond the limits are dropped and counted: the API server has other clients.
const (
	eventsWaiting   = 1000
	eventsPerSecond = 5
	eventsBurst     = 20
	eventTries      = 6
	firstEventRetry = time.Second // then twice as long each time
	eventTimeout    = 5 * time.Second
	maxEventText    = 1024 // bytes
)

// eventSource is the component that events name as their source.
const eventSource = "wva"

const kindConfigMap = "ConfigMap"

// Reasons for dropping an event, as the metric names them.
const (
	dropQueueFull = "queue_full" // the queue is full
	dropRate      = "rate"       // too many about one object
	dropForbidden = "forbidden"  // a role is missing
	dropFailed    = "failed"     // the API server rejected it, or did not answer for a minute
)

// WriterOptions are the options of a Writer.
type WriterOptions struct {
	// Config is the configuration of the client; it is copied. Events have a rate limit of their
	// own: 5 requests a second, 20 at once. Required.
	Config *rest.Config
	// Leader reports whether this replica writes the events. Default: it does.
	Leader func() bool
	// Object returns the kind and the UID of a variant's object; no kind is ScaledObject. kubectl
	// describe shows events with the UID of the object only; kubectl events shows all. Default:
	// they are not known.
	Object func(fleet.VariantID) corev1.ObjectReference
	// Logger gets a warning if a role is missing, once. Default: nothing is logged.
	Logger *slog.Logger
	// Registerer gets the counters of written and dropped events. Default: they are shown nowhere.
	Registerer prometheus.Registerer
}

// Writer writes Kubernetes events on the variants' ScaledObjects. Equal events become one with
// a count, many with one reason are combined, and no object gets more than 25 at once and then one
// every five minutes, warnings and others apart. The ConfigMaps of a namespace count as one object:
// a tenant makes new ones at will.
//
// It uses client-go's correlation and not its recorder: nobody can wait for the goroutines of that,
// and it delays all events by two minutes if one cannot be written.
type Writer struct {
	options    WriterOptions
	client     eventClient
	correlator *record.EventCorrelator
	waiting    chan timedNotice
	written    prometheus.Counter
	dropped    *prometheus.CounterVec
	made       int64 // events so far; it makes their names unique
	warned     bool  // that a role is missing
}

// timedNotice is a notice with its time.
type timedNotice struct {
	fleet.Notice
	at time.Time
	// configMap is the object of the notice if it is about no variant.
	configMap *ConfigMapEvent
}

// ConfigMapEvent is a warning on a ConfigMap with configuration: a part of it is not used.
type ConfigMapEvent struct {
	Namespace, Name, UID string
	Text                 string
}

// NewWriter returns a writer, which Run starts. It sends nothing to the API server.
func NewWriter(options WriterOptions) (*Writer, error) {
	if options.Config == nil {
		return nil, errors.New("events: no API server; set WriterOptions.Config")
	}
	client, err := newEventClient(options.Config)
	if err != nil {
		return nil, err
	}
	options.setDefaults()
	w := &Writer{
		options: options, client: client, correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{SpamKeyFunc: limitedTogether}),
		waiting: make(chan timedNotice, eventsWaiting),
		written: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "wva_events_written_total", Help: "Kubernetes events that were written, updates of the count of an equal one included.",
		}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_events_dropped_total", Help: "Kubernetes events that were not written, by reason: queue_full, rate, forbidden or failed.",
		}, []string{"reason"}),
	}
	for _, reason := range []string{dropQueueFull, dropRate, dropForbidden, dropFailed} {
		w.dropped.WithLabelValues(reason)
	}
	for _, c := range []prometheus.Collector{w.written, w.dropped} {
		if err := options.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("events: registering metrics: %w; give each writer its own registry", err)
		}
	}
	return w, nil
}

// limitedTogether returns the key of the events that have one limit.
func limitedTogether(event *corev1.Event) string {
	about := event.InvolvedObject
	key := []string{about.Kind, about.Namespace, event.Type}
	if about.Kind != kindConfigMap {
		key = append(key, about.Name, string(about.UID), about.APIVersion)
	}
	return strings.Join(key, "\x00")
}

func (o *WriterOptions) setDefaults() {
	if o.Leader == nil {
		o.Leader = func() bool { return true }
	}
	if o.Object == nil {
		o.Object = func(fleet.VariantID) corev1.ObjectReference { return corev1.ObjectReference{} }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
}

// Write queues notices, and returns at once. A replica that does not lead writes nothing: another
// one does.
func (w *Writer) Write(notices []fleet.Notice) {
	if len(notices) == 0 || !w.options.Leader() {
		return
	}
	now := time.Now()
	for _, n := range notices {
		w.put(timedNotice{Notice: n, at: now})
	}
}

// WriteConfigMaps queues warnings on ConfigMaps, as Write does.
func (w *Writer) WriteConfigMaps(rejected []ConfigMapEvent) {
	if len(rejected) == 0 || !w.options.Leader() {
		return
	}
	now := time.Now()
	for i := range rejected {
		about := fleet.Notice{
			Variant: fleet.VariantID{Namespace: rejected[i].Namespace, Name: rejected[i].Name},
			Warning: true, Code: fleet.CodeConfigurationRejected, Text: rejected[i].Text,
		}
		w.put(timedNotice{Notice: about, at: now, configMap: &rejected[i]})
	}
}

func (w *Writer) put(n timedNotice) {
	select {
	case w.waiting <- n:
	default:
		w.dropped.WithLabelValues(dropQueueFull).Inc()
	}
}

// Run writes until the context ends, and returns nil. Queued notices are not written any more then.
func (w *Writer) Run(ctx context.Context) error {
	defer w.client.close()
	ctx = quiet(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case n := <-w.waiting:
			w.write(ctx, w.event(n))
		}
	}
}

// event returns a notice as an event about its object.
func (w *Writer) event(n timedNotice) *corev1.Event {
	w.made++
	about := w.objectOf(n)
	eventType := corev1.EventTypeNormal
	if n.Warning {
		eventType = corev1.EventTypeWarning
	}
	at := metav1.NewTime(n.at)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name: recordutil.GenerateEventName(n.Variant.Name, n.at.UnixNano()+w.made), Namespace: n.Variant.Namespace,
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: about.APIVersion, Kind: about.Kind,
			Namespace: n.Variant.Namespace, Name: n.Variant.Name, UID: about.UID,
		},
		Type: eventType, Reason: string(n.Code), Message: clip(n.Text),
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
		Source: corev1.EventSource{Component: eventSource}, ReportingController: eventSource,
	}
}

// objectOf returns the kind and the UID of a notice's object.
func (w *Writer) objectOf(n timedNotice) corev1.ObjectReference {
	if n.configMap != nil {
		return corev1.ObjectReference{APIVersion: "v1", Kind: kindConfigMap, UID: types.UID(n.configMap.UID)}
	}
	about := w.options.Object(n.Variant)
	about.APIVersion, about.Kind = "keda.sh/v1alpha1", cmp.Or(about.Kind, "ScaledObject")
	return about
}

// write sends one event to the API server, unless correlation drops it. It retries while the API
// server does not answer; other notices wait in the queue meanwhile.
func (w *Writer) write(ctx context.Context, event *corev1.Event) {
	result, err := w.correlator.EventCorrelate(event)
	switch {
	case err != nil:
		w.drop(dropFailed, err)
		return
	case result.Skip:
		w.dropped.WithLabelValues(dropRate).Inc()
		return
	}
	for try, wait := 1, firstEventRetry; ; try, wait = try+1, 2*wait {
		stored, verb, err := w.client.send(ctx, result.Event, result.Patch)
		switch {
		case err == nil:
			if stored != nil {
				w.correlator.UpdateState(stored)
			}
			w.written.Inc()
			return
		case isMissingRole(err):
			w.warn(verb, event.Namespace, err)
			w.dropped.WithLabelValues(dropForbidden).Inc()
			return
		case isFinal(err) || try == eventTries:
			w.drop(dropFailed, err)
			return
		}
		if !sleep(ctx, wait) {
			return
		}
	}
}

// warn logs once that a role is missing: it is missing for all later events.
func (w *Writer) warn(verb, namespace string, err error) {
	if w.warned {
		return
	}
	w.warned = true
	w.options.Logger.Warn("events not written, a role is missing", "verb", verb, "resource", "events", "namespace", namespace,
		"error", err, "remedy", "allow create and patch on events in the role of the service account")
}

func (w *Writer) drop(reason string, err error) {
	w.dropped.WithLabelValues(reason).Inc()
	w.options.Logger.Debug("event dropped", "reason", reason, "error", err)
}

// sleep returns true after the given time, and false if the context ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// clip shortens a text to maxEventText bytes without cutting a rune in two.
func clip(text string) string {
	if len(text) <= maxEventText {
		return text
	}
	const ellipsis = "…"
	end := maxEventText - len(ellipsis)
	for end > 0 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end] + ellipsis
}
