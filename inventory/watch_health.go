package inventory

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// health is how a feed stands.
type health struct {
	listed  bool      // once at least, whole
	seen    time.Time // when it was last listed whole
	failure *failure  // nil where it works; it is replaced, never changed
}

// failure is what keeps a feed from being read.
type failure struct {
	since time.Time // since when anything does
	verb  string
	class failureClass
	text  string // of the first error of the class: later ones differ in port numbers and the like
}

// failureClass is what an error means for the feed.
type failureClass int

const (
	failedOtherwise    failureClass = iota // the API server does not answer, or not as it should
	failedUnauthorized                     // it does not know who asks
	failedForbidden                        // a role is missing
	failedNotServed                          // it does not serve the kind
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

// textOf returns what an error says, without the address that was asked, which differs from one request to the next.
func textOf(err error) string {
	if request, isOne := errors.AsType[*url.Error](err); isOne {
		return request.Err.Error()
	}
	return err.Error()
}

// isUnreadable reports whether the feed never showed anything, and will not before somebody changes the cluster.
func (h health) isUnreadable() bool {
	return !h.listed && h.failure != nil && h.failure.class != failedOtherwise
}

// firstReadLimit is how long a kind that fails keeps all others from being decided on when everything is read for the first
// time. What needs it is held from then on.
const firstReadLimit = time.Minute

// settled reports whether the feed shows what it can, and where it does not, when it will be given up; the zero time where
// never: without ScaledObjects and chosen namespaces there is nothing to decide. A kind that no variant names is given up at
// its first failure.
func (s watchState) settled(now time.Time) (bool, time.Time) {
	isNeeded := s.isRequired() && s.cause != causeWorkload && s.cause != causePod
	switch {
	case s.health.listed || s.health.isUnreadable() || (s.unnamed && s.health.failure != nil):
		return true, time.Time{}
	case isNeeded || s.health.failure == nil:
		return false, time.Time{}
	}
	at := s.health.failure.since.Add(firstReadLimit)
	return !now.Before(at), at
}

// expiry returns when what the feed shows ceases to be trusted; false where it does not, or never was.
func (h health) expiry(maxAge time.Duration) (time.Time, bool) {
	if !h.listed || h.failure == nil {
		return time.Time{}, false
	}
	since := h.failure.since
	if h.seen.After(since) {
		since = h.seen
	}
	return since.Add(maxAge), true
}

// trusted reports whether rows may rest on what the feed shows.
func (h health) trusted(now time.Time, maxAge time.Duration) bool {
	at, expires := h.expiry(maxAge)
	return h.listed && (!expires || now.Before(at))
}

// noteFailure notes an error. It is told where it is not what failed before.
func (f *resourceWatch) noteFailure(verb string, err error) {
	f.errors.Inc()
	next := &failure{since: time.Now(), verb: verb, class: classOf(err), text: textOf(err)}
	f.mu.Lock()
	before := f.health.failure
	told := before == nil || before.class != next.class || (next.class == failedForbidden && before.verb != next.verb)
	if before != nil {
		next.since = before.since
	}
	if told {
		f.health.failure = next
	}
	f.mu.Unlock()
	if told {
		f.notify(causeWatch)
	}
}

// noteSuccess notes that the feed can be read.
func (f *resourceWatch) noteSuccess() {
	f.mu.Lock()
	before := f.health.failure
	f.health.failure = nil
	f.mu.Unlock()
	if before != nil {
		f.notify(causeWatch)
	}
}

// isRequired reports whether workloads rest on what the feed shows.
func (s watchState) isRequired() bool {
	return s.id.resource == scaledObjectsResource() || s.cause == causeWorkload || s.cause == causePod || s.cause == causeNamespace
}

// consequence says what follows where the feed never showed anything.
func (s watchState) consequence() string {
	switch s.cause {
	case causeScaledObject:
		return "no variant that it holds is seen"
	case causeNode:
		return "no accelerators are seen"
	case causeAutoscaler:
		return "HPAs that scale the same targets are not seen"
	case causeNamespace:
		return "no namespace is chosen"
	}
	if s.unnamed {
		return "variants that its annotations declare are not seen"
	}
	return "variants that need it are held"
}

// problem returns what is wrong with a feed; false where nothing is.
func (s watchState) problem(trusted bool) (Problem, bool) {
	failure := s.health.failure
	if failure == nil || (s.unnamed && failure.class == failedNotServed) {
		return Problem{}, false
	}
	since := failure.since.UTC().Format("2006-01-02 15:04 UTC")
	follows := "; what was seen before stays in force"
	switch {
	case !s.health.listed:
		follows = "; " + s.consequence()
	case !trusted && s.isRequired():
		follows = "; that is too long ago to trust what was seen before, so variants that need it are held"
	}
	p := Problem{Object: "watch of " + s.id.String()}
	switch failure.class {
	case failedForbidden:
		p.Text = fmt.Sprintf("%s on %s is forbidden since %s", failure.verb, s.id, since) + follows
		p.Remedy = fmt.Sprintf("allow list and watch on %s in the role of the service account", s.id.name())
	case failedNotServed:
		p.Text = fmt.Sprintf("the API server does not serve it since %s", since) + follows
		p.Remedy = "install the CustomResourceDefinition that it belongs to"
	case failedUnauthorized:
		p.Text = fmt.Sprintf("the credentials are not accepted since %s", since) + follows
		p.Remedy = "give the kubeconfig, or the service account, a token or certificate that is valid"
	case failedOtherwise:
		p.Text = fmt.Sprintf("fails since %s: %s", since, failure.text) + follows
		p.Remedy = "see that the API server can be reached and answers"
	}
	return p, true
}
