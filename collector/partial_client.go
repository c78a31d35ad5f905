package collector

import (
	"bytes"
	"context"
	"net/http"
	"regexp"
	"slices"

	"github.com/prometheus/client_golang/api"
)

// partialClient gives answers that are marked as partial, as VictoriaMetrics does it, a warning, as
// Thanos and Mimir give it.
type partialClient struct{ api.Client }

// Do sends a request and returns the body of the answer.
func (c partialClient) Do(ctx context.Context, request *http.Request) (*http.Response, []byte, error) {
	response, body, err := c.Client.Do(ctx, request)
	if err != nil || !isPartial(body) {
		return response, body, err
	}
	return response, slices.Concat([]byte(`{"warnings":["isPartial is true"],`), bytes.TrimLeft(body, " \t\r\n")[1:]), nil
}

// partialMark is the mark of a partial answer. No label makes one: values are strings, in which
// quotes are escaped.
var partialMark = regexp.MustCompile(`"isPartial"\s*:\s*true`)

// isPartial reports whether an answer is marked as partial. It is not decoded for that, which takes
// long.
func isPartial(body []byte) bool { return partialMark.Match(body) }
