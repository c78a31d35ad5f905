package cluster

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wva-project/wva/inventory"
)

// health is the state of a watch.
type health struct {
	listed  bool      // at least once, completely
	seen    time.Time // time of the last complete list
	changed time.Time // time of the last change of a row
	// recovered is when the last failure ended.
	recovered time.Time
	failure   *failure // nil while the watch works; it is replaced, never changed
}

// failure is why a watch cannot be read.
type failure struct {
	since time.Time // since when the watch has failed, for any cause
	verb  string
	class failureClass
	text  string // of the first error of the class: later ones differ in port numbers and the like
}

// failureClass is the type of a failure, by its remedy.
type failureClass int

const (
	// the API server does not answer, or answers with an error of its own
	failedOtherwise    failureClass = iota
	failedUnauthorized              // the credentials are not accepted
	failedForbidden                 // a role is missing
	failedNotServed                 // the API server does not serve the resource
)

func classOf(err error) failureClass {
	switch {
	case apierrors.IsUnauthorized(err):
		return failedUnauthorized
	case apierrors.IsForbidden(err):
		return failedForbidden
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return failedNotServed
	}
	return failedOtherwise
}

// textOf returns the text of an error without the address of the request, which differs from one
// request to the next.
func textOf(err error) string {
	if request, isOne := errors.AsType[*url.Error](err); isOne {
		return request.Err.Error()
	}
	return err.Error()
}

// isUnreadable reports whether the watch never listed anything, and will not until somebody changes
// the cluster.
func (h health) isUnreadable() bool {
	return !h.listed && h.failure != nil && h.failure.class != failedOtherwise
}

// firstReadLimit is how long one resource that fails may delay the first decision. Variants that
// need it are held from then on.
const firstReadLimit = time.Minute

// settled reports whether the watch has its first list, or will not be waited for. If neither, it
// returns the time at which waiting ends; zero if it never does: without ScaledObjects and selected
// namespaces there is nothing to decide. A kind that no variant names is not waited for after its
// first failure.
func (s watchState) settled(now time.Time) (bool, time.Time) {
	switch {
	case s.health.listed || s.health.isUnreadable() || (s.unnamed && s.health.failure != nil):
		return true, time.Time{}
	case s.isAwaited || s.health.failure == nil:
		return false, time.Time{}
	}
	at := s.health.failure.since.Add(firstReadLimit)
	return !now.Before(at), at
}

// expiry returns the time at which the last state ceases to be trusted; false if it does not
// expire, or was never trusted.
func (h health) expiry(maxAge time.Duration) (time.Time, bool) {
	if !h.listed || h.failure == nil {
		return time.Time{}, false
	}
	return h.knownAt().Add(maxAge), true
}

// knownAt returns when the rows of a failing watch were last known to be complete; zero if the
// watch works.
func (h health) knownAt() time.Time {
	switch {
	case h.failure == nil:
		return time.Time{}
	case h.seen.After(h.failure.since):
		return h.seen
	}
	return h.failure.since
}

// trusted reports whether decisions may use the rows of the watch.
func (h health) trusted(now time.Time, maxAge time.Duration) bool {
	at, expires := h.expiry(maxAge)
	return h.listed && (!expires || now.Before(at))
}

// noteFailure notes an error. It notifies if the failure differs from the previous one.
func (w *resourceWatch) noteFailure(verb string, err error) {
	if w.noteAbsent(err) {
		return
	}
	w.errors.Inc()
	next := &failure{since: time.Now(), verb: verb, class: classOf(err), text: textOf(err)}
	w.mu.Lock()
	before := w.health.failure
	isNew := before == nil || before.class != next.class || (next.class == failedForbidden && before.verb != next.verb)
	if before != nil {
		next.since = before.since
	}
	if isNew {
		w.health.failure = next
	}
	w.mu.Unlock()
	if isNew {
		w.notify(causeWatch)
	}
}

// noteAbsent notes that the API server does not serve an optional resource, and so has no object of
// it, in any version: the next attempt is for another one. It reports whether that is the case; a
// resource of which there were objects fails instead.
func (w *resourceWatch) noteAbsent(err error) bool {
	w.mu.Lock()
	if classOf(err) == failedNotServed {
		w.version = (w.version + 1) % len(w.clients)
	}
	if w.isOptional && classOf(err) == failedNotServed && len(w.rows) == 0 && w.version > 0 {
		w.next = true
		w.mu.Unlock()
		return true
	}
	if !w.isOptional || classOf(err) != failedNotServed || len(w.rows) > 0 {
		w.mu.Unlock()
		return false
	}
	isNews := !w.health.listed
	w.absent, w.health.listed, w.health.seen = true, true, time.Now()
	ended := w.endFailure()
	w.mu.Unlock()
	switch {
	case ended:
		w.recovered()
	case isNews:
		w.notify(causeWatch)
	}
	return true
}

// isAbsent reports whether the API server does not serve the resource, which is optional.
func (w *resourceWatch) isAbsent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.absent
}

// noteSuccess notes that the watch can be read.
func (w *resourceWatch) noteSuccess() {
	w.mu.Lock()
	ended := w.endFailure()
	w.mu.Unlock()
	if ended {
		w.recovered()
	}
}

// noteComplete notes that the list of a stream is complete. The watch can be read from the moment
// at which its rows are replaced.
func (w *resourceWatch) noteComplete() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.complete = true
}

// endFailure ends the failure, and reports whether there was one. The watch is locked.
func (w *resourceWatch) endFailure() bool {
	if w.health.failure == nil {
		return false
	}
	w.health.failure, w.health.recovered = nil, time.Now()
	return true
}

// consequence is the effect of a watch that never listed anything.
func (s watchState) consequence() string {
	if s.unnamed {
		return "variants that its annotations declare are not seen"
	}
	return s.without
}

// problem returns the problem of a watch; false if it has none.
func (s watchState) problem(trusted bool) (inventory.Problem, bool) {
	failure := s.health.failure
	if failure == nil || (s.unnamed && failure.class == failedNotServed) {
		return inventory.Problem{}, false
	}
	since := failure.since.UTC().Format("2006-01-02 15:04 UTC")
	effect := "; its last state is used"
	switch {
	case !s.health.listed || s.absent:
		effect = "; " + s.consequence()
	case !trusted && s.holdsVariants:
		effect = "; its last state is too old to be used, so " + variantsHeld
	}
	p := inventory.Problem{Object: "watch of " + s.id.String()}
	switch failure.class {
	case failedForbidden:
		p.Text = fmt.Sprintf("%s on %s is forbidden since %s", failure.verb, s.id, since) + effect
		p.Remedy = fmt.Sprintf("allow list and watch on %s in the role of the service account", s.id.name())
	case failedNotServed:
		p.Text = fmt.Sprintf("the API server does not serve it since %s", since) + effect
		p.Remedy = "install the CustomResourceDefinition that it belongs to"
	case failedUnauthorized:
		p.Text = fmt.Sprintf("the credentials are not accepted since %s", since) + effect
		p.Remedy = "give the kubeconfig, or the service account, a token or certificate that is valid"
	case failedOtherwise:
		p.Text = fmt.Sprintf("fails since %s: %s", since, failure.text) + effect
		p.Remedy = "check that the API server can be reached and answers"
	}
	return p, true
}
