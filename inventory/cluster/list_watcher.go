package cluster

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
)

// item is one object from the API server, decoded at once: the object itself is not kept.
type item struct {
	metav1.ObjectMeta // name, namespace, UID and resource version only

	row row
}

// GetObjectKind returns nothing: the watch knows the kind.
func (a *item) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the item itself, which nobody changes.
func (a *item) DeepCopyObject() runtime.Object { return a }

// itemList is a list of items.
type itemList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []item
}

// DeepCopyObject returns the list itself, which nobody changes.
func (a *itemList) DeepCopyObject() runtime.Object { return a }

// The verbs by which a watch reads.
const (
	verbList  = "list"
	verbWatch = "watch"
)

// listWatcher lists and watches for a resourceWatch. It decodes objects, and notes failures and
// successes.
type listWatcher struct {
	watch *resourceWatch

	mu    sync.Mutex
	ended bool
	cut   bool           // the last stream ended before its list was complete
	lists sync.WaitGroup // the reflector does not wait for a list that it has cancelled
}

// begin reports whether a list may begin; lists.Done has to be called at its end.
func (s *listWatcher) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.lists.Add(1)
	}
	return !s.ended
}

// end waits for the lists under way. None begins any more.
func (s *listWatcher) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.lists.Wait()
}

// List is never called: the reflector knows ListWithContext.
func (s *listWatcher) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

// Watch is never called: the reflector knows WatchWithContext.
func (s *listWatcher) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

// ListWithContext returns a page of the list.
func (s *listWatcher) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if !s.begin() {
		return nil, context.Canceled
	}
	defer s.lists.Done()
	options.FieldSelector, options.LabelSelector = s.watch.fieldSelector(), s.watch.watchedResource.labels
	answered := s.expectAnswer(verbList)
	list, err := s.watch.client().List(ctx, options)
	answered()
	if err != nil {
		if ctx.Err() == nil && !isExpired(err) {
			s.watch.noteFailure(verbList, err)
		}
		return nil, err
	}
	page := &itemList{ListMeta: metav1.ListMeta{
		ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue(), RemainingItemCount: list.GetRemainingItemCount(),
	}}
	page.Items = make([]item, len(list.Items))
	for i := range list.Items {
		s.watch.decode(&list.Items[i], &page.Items[i])
		list.Items[i].Object = nil // the next ones need the memory
	}
	return page, nil
}

// WatchWithContext returns a stream of changes. A stream that begins with the whole list is an
// attempt: if it is rejected, the reflector lists instead, and that list notes the failure.
func (s *listWatcher) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	listsFirst := options.SendInitialEvents != nil && *options.SendInitialEvents
	if listsFirst && s.wasCut() {
		// The reflector would try again without end, and without a pause.
		s.watch.noteFailure(verbWatch, errCut)
		return nil, errCut
	}
	options.FieldSelector, options.LabelSelector = s.watch.fieldSelector(), s.watch.watchedResource.labels
	answered := s.expectAnswer(verbWatch)
	events, err := s.watch.client().Watch(ctx, options)
	answered()
	switch {
	case err != nil && isExpired(err) && listsFirst && options.ResourceVersion == "":
		// Nothing can be older than the newest version. The reflector would try again without end,
		// and without a pause.
		return nil, errors.New(err.Error())
	case err != nil:
		again := utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
		if ctx.Err() == nil && !isExpired(err) && (again || !listsFirst) {
			s.watch.noteFailure(verbWatch, err)
		}
		return nil, err
	case reflect.TypeOf(events) == reflect.TypeOf(watch.NewEmptyWatch()):
		// This is client-go's answer if the connection breaks or times out, again and again. The
		// reflector keeps trying.
		if ctx.Err() == nil {
			s.watch.noteFailure(verbWatch, errBroken)
		}
		return events, nil
	case !listsFirst:
		s.watch.noteSuccess()
	}
	return newStream(events, s, listsFirst), nil
}

// noteCut notes that a stream ended before its list was complete.
func (s *listWatcher) noteCut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = true
}

// wasCut reports whether the last stream ended before its list was complete, once.
func (s *listWatcher) wasCut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	cut := s.cut
	s.cut = false
	return cut
}

// answerLimit is the time after which an API server that accepts requests and does not answer
// counts as failing. A connection alone times out after 30 s, and is tried ten times before
// client-go returns an error.
const answerLimit = 30 * time.Second

var (
	errBroken = errors.New("the connection breaks before an answer")
	errSilent = errors.New("there is no answer within " + answerLimit.String())
	errCut    = errors.New("the stream ends before its list is complete")
	errEnds   = errors.New("its streams end again and again, or the versions that they ask for have expired")
)

// expectAnswer notes a failure if the returned function is not called in time.
func (s *listWatcher) expectAnswer(verb string) (answered func()) {
	timer := time.AfterFunc(answerLimit, func() { s.watch.noteFailure(verb, errSilent) })
	return func() { timer.Stop() }
}

// isExpired reports whether an error says only that a version is too old. The reflector then begins
// anew.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }
