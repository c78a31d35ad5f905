package scaler

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wva-project/wva/fleet"
)

// maxStatusText bounds the text of a status, in bytes: KEDA copies it whole into an event on the user's object.
const maxStatusText = 199

// kind is why a request is not answered with a number.
type kind int

const (
	malformed  kind = iota + 1 // the request itself cannot be read
	invalid                    // the trigger's metadata leave nothing to decide
	undecided                  // no number is known
	misapplied                 // KEDA would make another number of ours
	unserved                   // no such service
	crowded                    // too many streams are open, or a request is too large
	tooSlow                    // no answer within the server's own deadline
)

// refusalError is an error that a caller of an RPC is told.
type refusalError struct {
	kind kind
	text string
}

func refuse(k kind, text string) error { return &refusalError{kind: k, text: text} }

func (r *refusalError) Error() string { return r.text }

// statusOf turns the error of an RPC into the status that its caller gets.
func statusOf(err error) *status.Status {
	if own, ok := status.FromError(err); ok {
		return own // nil, or what gRPC itself said
	}
	if refused, ok := errors.AsType[*refusalError](err); ok {
		return status.New(codeOf(err), clip(refused.text))
	}
	return status.New(codeOf(err), "the request was not answered: see the log of the scaler")
}

// codeOf chooses the code of every error of this package. On any of them KEDA leaves the replicas as they are, except
// where its user set a fallback.
func codeOf(err error) codes.Code {
	refused, ok := errors.AsType[*refusalError](err)
	switch {
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case !ok:
		return codes.Internal
	}
	switch refused.kind {
	case malformed, invalid:
		return codes.InvalidArgument
	case undecided:
		return codes.Unavailable
	case misapplied:
		return codes.FailedPrecondition
	case unserved:
		return codes.NotFound
	case crowded:
		return codes.ResourceExhausted
	case tooSlow:
		return codes.DeadlineExceeded
	default:
		return codes.Internal
	}
}

// clip shortens a text to maxStatusText bytes without cutting a rune in two.
func clip(text string) string {
	if len(text) <= maxStatusText {
		return text
	}
	const ellipsis = "…"
	end := maxStatusText - len(ellipsis)
	for end > 0 && text[end]&0xC0 == 0x80 {
		end--
	}
	return text[:end] + ellipsis
}

// The longest names that Kubernetes accepts.
const (
	maxNamespaceLength = 63
	maxNameLength      = 253
)

// identify returns the variant that a request names, or an error that says what is wrong with the name.
func identify(namespace, name string) (fleet.VariantID, error) {
	if err := checkName("namespace", namespace, maxNamespaceLength); err != nil {
		return fleet.VariantID{}, err
	}
	if err := checkName("name", name, maxNameLength); err != nil {
		return fleet.VariantID{}, err
	}
	return fleet.VariantID{Namespace: namespace, Name: name}, nil
}

func checkName(what, name string, limit int) error {
	if name == "" {
		return refuse(malformed, what+" is empty: name the ScaledObject by its namespace and name")
	}
	if len(name) > limit {
		return refuse(malformed, fmt.Sprintf("%s has %d characters; a ScaledObject's has at most %d", what, len(name), limit))
	}
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.') {
			return refuse(malformed, fmt.Sprintf("%s holds %q; a ScaledObject's holds a-z, 0-9, '-' and '.' only", what, c))
		}
	}
	return nil
}
