package record

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

// Connect returns the API of the Prometheus, or of a server with its HTTP API such as Thanos, at an
// http or https URL.
func Connect(address string, transport http.RoundTripper) (v1.API, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, fmt.Errorf("prometheus URL %q: write it as http://prometheus.monitoring:9090", address)
	}
	client, err := api.NewClient(api.Config{Address: address, RoundTripper: transport})
	if err != nil {
		return nil, err
	}
	return v1.NewAPI(client), nil
}
