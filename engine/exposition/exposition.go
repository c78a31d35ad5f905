// Package exposition answers scrapes as the client libraries of engines do: it writes a page of
// metrics in the format, and with the names, that a scraper's Accept header asks for. Tests serve
// pages with it, so that Prometheus stores the names that it would store in a cluster.
//
// A page is text in Prometheus' format 0.0.4, as an engine answers a request without an Accept
// header.
//
// Limits: of the escaping schemes only allow-utf-8 and underscores are known; any other is answered
// as underscores.
package exposition

import (
	"strings"

	"github.com/wva-project/wva/engine"
)

const (
	plainText   = "text/plain; version=0.0.4; charset=utf-8"
	allowUTF8   = "allow-utf-8"
	underscores = "underscores"
)

// PlainText answers like vLLM and production-stack's router: with the page as it is, whatever was
// asked for.
func PlainText(page, _ string) (contentType, body string) { return plainText, page }

// Python answers like prometheus_client 0.22 and later (choose_encoder of exposition.py), which
// SGLang serves: the first media type of the header that it has, whatever its weight.
func Python(page, accept string) (contentType, body string) {
	for accepted := range strings.SplitSeq(accept, ",") {
		media, parameters, _ := strings.Cut(accepted, ";")
		version, escaping := parameter(parameters, "version"), escapingOf(parameters)
		switch {
		case strings.TrimSpace(media) == "application/openmetrics-text" && version == "":
			return "application/openmetrics-text; version=1.0.0; charset=utf-8", openMetrics(page, underscores)
		case strings.TrimSpace(media) == "application/openmetrics-text" && version >= "1.0.0":
			return "application/openmetrics-text; version=" + version + "; charset=utf-8; escaping=" + escaping, openMetrics(page, escaping)
		case strings.TrimSpace(media) == "text/plain" && version >= "1.0.0":
			return "text/plain; version=1.0.0; charset=utf-8; escaping=" + escaping, page
		}
	}
	return plainText, page
}

// parameter returns the value of a parameter of a media type; empty if it has none.
func parameter(parameters, name string) string {
	for parameter := range strings.SplitSeq(parameters, ";") {
		if key, value, _ := strings.Cut(strings.TrimSpace(parameter), "="); key == name {
			return value
		}
	}
	return ""
}

// escapingOf returns the escaping scheme that the library uses. One that is not named is
// underscores.
func escapingOf(parameters string) string {
	if parameter(parameters, "escaping") == allowUTF8 {
		return allowUTF8
	}
	return underscores
}

// openMetrics writes a page in OpenMetrics: the names of counters lose their suffix in comments,
// and the names of samples are escaped as if they were names of labels.
func openMetrics(page, escaping string) string {
	counters := make(map[string]bool)
	for line := range strings.Lines(page) {
		if words := strings.Fields(line); len(words) == 4 && words[1] == "TYPE" && words[3] == "counter" {
			counters[words[2]] = true
		}
	}
	var out strings.Builder
	for line := range strings.Lines(page) {
		switch words := strings.SplitN(line, " ", 4); {
		case !strings.HasPrefix(line, "#"):
			out.WriteString(sample(line, escaping))
		case len(words) == 4 && counters[words[2]]:
			words[2] = strings.TrimSuffix(words[2], "_total")
			out.WriteString(strings.Join(words, " "))
		default:
			out.WriteString(line)
		}
	}
	out.WriteString("# EOF\n")
	return out.String()
}

func sample(line, escaping string) string {
	end := strings.IndexAny(line, "{ ")
	if escaping == allowUTF8 || end < 0 {
		return line
	}
	return engine.Escaped(line[:end]) + line[end:]
}
