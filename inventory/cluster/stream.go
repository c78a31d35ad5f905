package cluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// silenceLimit is the longest silence of a stream: then another one is opened, and goes on at the
// same version. An API server sends a bookmark each minute, so a longer silence is that of a
// connection whose other end is gone. If it sends none, the exchange costs one request.
const silenceLimit = 150 * time.Second

// stream is a watch whose events are decoded as they come.
type stream struct {
	events  watch.Interface
	source  *listWatcher
	listing bool // the list is not complete; pump's
	result  chan watch.Event
	once    sync.Once
	done    chan struct{}
}

func newStream(events watch.Interface, source *listWatcher, listsFirst bool) *stream {
	s := &stream{events: events, source: source, listing: listsFirst, result: make(chan watch.Event), done: make(chan struct{})}
	source.watch.streams.Go(s.pump)
	return s
}

// Stop ends the stream.
func (s *stream) Stop() {
	s.once.Do(func() {
		close(s.done)
		s.events.Stop()
	})
}

// ResultChan returns the events. It is closed at the end.
func (s *stream) ResultChan() <-chan watch.Event { return s.result }

// pump passes on events until the watch ends, or delivers nothing for too long.
func (s *stream) pump() {
	defer close(s.result)
	defer s.Stop()
	silence := time.NewTimer(s.limit())
	defer silence.Stop()
	for {
		select {
		case event, open := <-s.events.ResultChan():
			if !open {
				s.finish()
				return
			}
			select {
			case s.result <- s.convert(event):
			case <-s.done:
				return
			}
			silence.Reset(s.limit())
		case <-silence.C:
			s.finish()
			return
		case <-s.done:
			return
		}
	}
}

// limit returns how long the stream may be silent.
func (s *stream) limit() time.Duration {
	if s.listing {
		return answerLimit
	}
	return silenceLimit
}

// finish notes a stream that ended by itself before its list was complete.
func (s *stream) finish() {
	if s.listing {
		s.source.noteCut()
	}
}

func (s *stream) convert(event watch.Event) watch.Event {
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		if u, isObject := event.Object.(*unstructured.Unstructured); isObject {
			a := new(item)
			s.source.watch.decode(u, a)
			event.Object = a
		}
	case watch.Bookmark:
		if object, err := meta.Accessor(event.Object); err == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			s.listing = false
			s.source.watch.noteComplete()
		}
	case watch.Error: // the reflector decides
		s.listing = false
	}
	return event
}
