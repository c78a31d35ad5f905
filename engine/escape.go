package engine

import "strings"

// Escaped returns the name under which Prometheus stores a metric if the engine's client library
// escapes it with underscores: every character that a label name must not have becomes one. It
// returns the name itself if there is nothing to escape.
//
// prometheus_client 0.22 and later, the Python library of SGLang and vLLM, escapes the names of
// samples in OpenMetrics this way although a colon is legal in them (client_python issue 1177): it
// writes sglang_token_usage for sglang:token_usage if the scraper asks for escaping=underscores or,
// like Prometheus 2, for no escaping at all.
func Escaped(metric string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		default:
			return '_'
		}
	}, metric)
}
