package collector

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// unreachable is the failure of a connection: no HTTP response came. Its text is the same for every
// query that fails for the same cause.
type unreachable struct {
	address, cause, remedy string
}

func (u *unreachable) Error() string {
	return fmt.Sprintf("%s unreachable: %s; %s", u.address, u.cause, u.remedy)
}

func isUnreachable(err error) bool {
	_, is := errors.AsType[*unreachable](err)
	return is
}

// withRemedy returns an error with its remedy.
func (c *Collector) withRemedy(err error) error {
	var rejected *v1.Error
	var large *sizeError
	var request *url.Error
	switch {
	case errors.As(err, &large):
		return fmt.Errorf("%s: %w", c.address, large)
	case errors.As(err, &rejected):
		return fmt.Errorf("%s: %w%s; %s", c.address, err, detail(rejected), remedy(rejected))
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &request):
		err = request.Err // without the URL, which may hold credentials
	}
	return newUnreachable(c.address, err)
}

func newUnreachable(address string, err error) *unreachable {
	u := &unreachable{address: address, cause: err.Error(), remedy: "check the address of Prometheus"}
	var network *net.OpError
	var name *net.DNSError
	switch {
	case errors.As(err, &name):
		u.cause = name.Err
	case errors.As(err, &network):
		// without the port of this end, which differs between queries
		u.cause = innermost(network).Error()
		u.remedy = "check the address, that Prometheus runs, and network policies"
	}
	if remedied, found := errors.AsType[*remediedError](err); found {
		u.remedy = remedied.remedy
		if network == nil {
			u.cause = remedied.error.Error()
		}
	}
	return u
}

// innermost returns the error that others wrap.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// displayAddress returns an address without credentials.
func displayAddress(address string) string {
	parsed, err := url.Parse(address)
	if address == "" || err != nil {
		return "Prometheus"
	}
	return (&url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: strings.TrimSuffix(parsed.Path, "/")}).String()
}

// detail is the beginning of the body of an error response.
func detail(rejected *v1.Error) string {
	const most = 120
	text := strings.Join(strings.Fields(rejected.Detail), " ")
	if text == "" || strings.Contains(rejected.Msg, text) {
		return ""
	}
	if len(text) > most {
		text = text[:most] + "..."
	}
	return " (" + strconv.Quote(text) + ")"
}

func remedy(rejected *v1.Error) string {
	switch rejected.Type {
	case v1.ErrServer, v1.ErrTimeout, v1.ErrCanceled:
		return "check that Prometheus is ready and not overloaded"
	case v1.ErrBadResponse:
		return "check that the address is that of Prometheus' HTTP API"
	case v1.ErrClient:
		return "check the address and the credentials for Prometheus"
	default:
		return "check that Prometheus is version 2.42 or later, and report the query if it is"
	}
}

// annotations are the beginnings of the warnings that PromQL itself gives about an expression. The
// answer is complete all the same. Any other warning means that a part of the data was not read.
var annotations = []string{
	"PromQL info: ",    // such as "metric might not be a counter"
	"PromQL warning: ", // such as "bucket label "le" is missing or has a malformed value"
}

// isAnnotation reports whether a warning is about the expression and not about the data.
func isAnnotation(warning string) bool {
	return slices.ContainsFunc(annotations, func(begin string) bool { return strings.HasPrefix(warning, begin) })
}
