package promstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/annotations"
)

// The error types of Prometheus' HTTP API with their status codes.
var (
	badData       = apiError{errorType: "bad_data", code: http.StatusBadRequest}
	executionFail = apiError{errorType: "execution", code: http.StatusUnprocessableEntity}
	internalFail  = apiError{errorType: "internal", code: http.StatusInternalServerError}
	timeoutFail   = apiError{errorType: "timeout", code: http.StatusServiceUnavailable}
	// nginx' code for a client that went away
	canceledFail = apiError{errorType: "canceled", code: 499}
)

type apiError struct {
	errorType string
	code      int
}

const (
	maxPoints      = 11_000 // of one series in the answer to a range query
	maxAnnotations = 10
)

// Handler serves /api/v1/query and /api/v1/query_range by GET and POST as Prometheus does. An
// instant query without a time is evaluated at the newest sample: the store has no clock.
func (s *Store) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		mux.HandleFunc(method+" /api/v1/query", func(w http.ResponseWriter, r *http.Request) { serve(w, r, s.prepareInstant) })
		mux.HandleFunc(method+" /api/v1/query_range", func(w http.ResponseWriter, r *http.Request) { serve(w, r, s.prepareRange) })
	}
	return mux
}

// Transport answers HTTP requests with Handler in the goroutine of the caller, without a network.
func (s *Store) Transport() http.RoundTripper { return transport{handler: s.Handler()} }

// prepareFunc returns the query of a request. Its errors are those of the client.
type prepareFunc func(context.Context, *http.Request) (promql.Query, error)

func (s *Store) prepareInstant(ctx context.Context, r *http.Request) (promql.Query, error) {
	at := s.newest()
	if text := r.FormValue("time"); text != "" {
		var err error
		if at, err = parseTime(text); err != nil {
			return nil, invalidParameter("time", err)
		}
	}
	query, err := s.engine.NewInstantQuery(ctx, s, nil, r.FormValue("query"), at)
	if err != nil {
		return nil, invalidParameter("query", err)
	}
	return query, nil
}

func (s *Store) prepareRange(ctx context.Context, r *http.Request) (promql.Query, error) {
	start, err := parseTime(r.FormValue("start"))
	if err != nil {
		return nil, invalidParameter("start", err)
	}
	end, err := parseTime(r.FormValue("end"))
	if err != nil {
		return nil, invalidParameter("end", err)
	}
	if end.Before(start) {
		return nil, invalidParameter("end", errors.New("end timestamp must not be before start time"))
	}
	step, err := parseDuration(r.FormValue("step"))
	if err != nil {
		return nil, invalidParameter("step", err)
	}
	if step <= 0 {
		return nil, invalidParameter("step", errors.New("zero or negative query resolution step widths are not accepted. Try a positive integer"))
	}
	if end.Sub(start)/step > maxPoints {
		return nil, errors.New("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")
	}
	query, err := s.engine.NewRangeQuery(ctx, s, nil, r.FormValue("query"), start, end, step)
	if err != nil {
		return nil, invalidParameter("query", err)
	}
	return query, nil
}

func invalidParameter(name string, err error) error {
	return fmt.Errorf("invalid parameter %q: %w", name, err)
}

func serve(w http.ResponseWriter, r *http.Request, prepare prepareFunc) {
	ctx := r.Context()
	if text := r.FormValue("timeout"); text != "" {
		timeout, err := parseDuration(text)
		if err != nil {
			respondError(w, badData, invalidParameter("timeout", err))
			return
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	query, err := prepare(ctx, r)
	if err != nil {
		respondError(w, badData, err)
		return
	}
	defer query.Close()
	result := query.Exec(ctx)
	if result.Err != nil {
		respondError(w, typeOf(result.Err), result.Err)
		return
	}
	body, err := encodeResult(result.Value, sortedAnnotations(result.Warnings, r.FormValue("query")))
	if err != nil {
		respondError(w, internalFail, err)
		return
	}
	respond(w, http.StatusOK, body)
}

// typeOf returns the type of an error of the engine.
func typeOf(err error) apiError {
	var canceled promql.ErrQueryCanceled
	var timeout promql.ErrQueryTimeout
	var storageFail promql.ErrStorage
	switch {
	case errors.As(err, &canceled), errors.Is(err, context.Canceled):
		return canceledFail
	case errors.As(err, &timeout):
		return timeoutFail
	case errors.As(err, &storageFail):
		return internalFail
	default:
		return executionFail
	}
}

// notes are the annotations of a result.
type notes struct{ warnings, infos []string }

func sortedAnnotations(found annotations.Annotations, query string) notes {
	warnings, infos := found.AsStrings(query, maxAnnotations, maxAnnotations)
	slices.Sort(warnings)
	slices.Sort(infos)
	return notes{warnings: warnings, infos: infos}
}

func respondError(w http.ResponseWriter, e apiError, err error) {
	respond(w, e.code, encodeError(e.errorType, err.Error()))
}

func respond(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client has gone away
}

// parseTime reads seconds since 1970 or RFC 3339.
func parseTime(text string) (time.Time, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		whole, fraction := math.Modf(seconds)
		fraction = math.Round(fraction*1000) / 1000
		return time.Unix(int64(whole), int64(fraction*float64(time.Second))).UTC(), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("cannot parse %q to a valid timestamp", text)
}

// parseDuration reads seconds or Prometheus' notation.
func parseDuration(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if nanoseconds := seconds * float64(time.Second); math.Abs(nanoseconds) < math.MaxInt64 {
			return time.Duration(nanoseconds), nil
		}
		return 0, fmt.Errorf("cannot parse %q to a valid duration. It overflows int64", text)
	}
	if d, err := model.ParseDuration(text); err == nil {
		return time.Duration(d), nil
	}
	return 0, fmt.Errorf("cannot parse %q to a valid duration", text)
}

type transport struct{ handler http.Handler }

// RoundTrip answers the request. It fails if the request's context is done, as a transport over a
// network does.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		defer request.Body.Close()
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	answer := &recorder{header: make(http.Header), code: http.StatusOK}
	t.handler.ServeHTTP(answer, request)
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		Status:        strconv.Itoa(answer.code) + " " + http.StatusText(answer.code),
		StatusCode:    answer.code,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        answer.header,
		Body:          io.NopCloser(&answer.body),
		ContentLength: int64(answer.body.Len()),
		Request:       request,
	}, nil
}

type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(code int)        { r.code = code }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
