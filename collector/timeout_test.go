package collector_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
)

// asking records the timeout of each query.
type asking struct{ timeouts []string }

func (a *asking) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := request.ParseForm(); err != nil {
		return nil, err
	}
	a.timeouts = append(a.timeouts, request.Form.Get("timeout"))
	return nil, http.ErrHandlerTimeout
}

func TestTimeoutIsWrittenAsPrometheusReadsIt(t *testing.T) {
	for timeout, want := range map[time.Duration]string{
		1333 * time.Millisecond: "2s", 1500 * time.Millisecond: "2s", 10 * time.Second: "10s", 666_666 * time.Microsecond: "667ms",
	} {
		var a asking
		c, err := collector.New(collector.Options{Address: "http://prometheus.invalid", RoundTripper: &a, Logger: quiet(), QueueTimeout: timeout})
		require.NoError(t, err)
		_, err = c.Queues(t.Context(), start)
		require.Error(t, err)
		require.NotEmpty(t, a.timeouts)
		require.Equal(t, want, a.timeouts[0])
		_, err = model.ParseDuration(a.timeouts[0])
		require.NoError(t, err, "Prometheus does not read it")
	}
}
