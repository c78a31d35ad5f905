package scaler

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wva-project/wva/fleet"
)

// maxStatusText bounds the text of a status, in bytes: KEDA copies it whole into an event on the
// user's object.
const maxStatusText = 199

// errorType is why a request is not answered with a number.
type errorType int

const (
	badRequest      errorType = iota + 1 // the request itself cannot be read
	invalidMetadata                      // the trigger's metadata are invalid
	noNumber                             // no number is known
	unsupported                          // KEDA would not apply the number as it is meant
	unknownService                       // no such service
	limitExceeded                        // too many streams are open, or a request is too large
	deadlineMissed                       // no answer within the server's own deadline
)

// requestError is an error that the caller of an RPC is told.
type requestError struct {
	errorType errorType
	text      string // one line: fact, then remedy
}

func newError(t errorType, text string) error { return &requestError{errorType: t, text: text} }

func (e *requestError) Error() string { return e.text }

// statusOf turns the error of an RPC into the status that its caller gets.
func statusOf(err error) *status.Status {
	if own, ok := status.FromError(err); ok {
		return own // nil, or an error of gRPC itself
	}
	if told, ok := errors.AsType[*requestError](err); ok {
		return status.New(codeOf(err), clip(told.text))
	}
	return status.New(codeOf(err), "the request was not answered: see the log of wva")
}

// codeOf chooses the code of every error of this package. On any of them KEDA leaves the replicas
// as they are, unless its user set a fallback.
func codeOf(err error) codes.Code {
	told, ok := errors.AsType[*requestError](err)
	switch {
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case !ok:
		return codes.Internal
	}
	switch told.errorType {
	case badRequest, invalidMetadata:
		return codes.InvalidArgument
	case noNumber:
		return codes.Unavailable
	case unsupported:
		return codes.FailedPrecondition
	case unknownService:
		return codes.NotFound
	case limitExceeded:
		return codes.ResourceExhausted
	case deadlineMissed:
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

// reasonText returns the text of a reason with its remedy, if both fit into a status after the
// prefix; else the text alone. Other details may change from cycle to cycle, and a status must not:
// Kubernetes folds equal events into one.
func reasonText(prefix string, reason fleet.Reason) string {
	text := prefix + reason.Text
	if remedy := reason.Detail(fleet.DetailRemedy); remedy != "" && len(text)+len("; ")+len(remedy) <= maxStatusText {
		text += "; " + remedy
	}
	return text
}

// The longest names that Kubernetes accepts.
const (
	maxNamespaceLength = 63
	maxNameLength      = 253
)

// identify returns the variant that a request names, or an error if the name is invalid.
func identify(namespace, name string) (fleet.VariantID, error) {
	if err := checkName("namespace", namespace, maxNamespaceLength); err != nil {
		return fleet.VariantID{}, err
	}
	if err := checkName("name", name, maxNameLength); err != nil {
		return fleet.VariantID{}, err
	}
	return fleet.VariantID{Namespace: namespace, Name: name}, nil
}

func checkName(field, name string, limit int) error {
	if name == "" {
		return newError(badRequest, field+" is empty: name the ScaledObject by its namespace and name")
	}
	if len(name) > limit {
		return newError(badRequest, fmt.Sprintf("%s has %d characters: use that of a ScaledObject, which has at most %d", field, len(name), limit))
	}
	for _, c := range []byte(name) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.') {
			return newError(badRequest, fmt.Sprintf("%s contains %q: use that of a ScaledObject, which has only a-z, 0-9, '-' and '.'", field, c))
		}
	}
	return nil
}
