package exposition

import (
	"os"
	"strings"
	"testing"
)

const page = `# HELP sglang:num_requests_total Number of requests processed.
# TYPE sglang:num_requests_total counter
sglang:num_requests_total{model_name="a:b"} 120.0
# HELP sglang:token_usage The token usage.
# TYPE sglang:token_usage gauge
sglang:token_usage 0.25
`

func TestPythonChoosesFormatAndNames(t *testing.T) {
	const colons, underscored = "sglang:num_requests_total{model_name=\"a:b\"} 120.0\n", "sglang_num_requests_total{model_name=\"a:b\"} 120.0\n"
	for _, c := range []struct{ accept, contentType, want string }{
		{"", "text/plain; version=0.0.4; charset=utf-8", colons},
		{"text/plain;version=0.0.4", "text/plain; version=0.0.4; charset=utf-8", colons},
		{"text/plain;version=1.0.0;escaping=allow-utf-8", "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8", colons},
		{"application/openmetrics-text", "application/openmetrics-text; version=1.0.0; charset=utf-8", underscored},
		{"application/openmetrics-text;version=0.0.1,*/*", "text/plain; version=0.0.4; charset=utf-8", colons},
		{"text/html, application/openmetrics-text; version=1.0.0;q=0.5,text/plain;version=0.0.4", "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores", underscored},
		{"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8", "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8", colons},
	} {
		contentType, body := Python(page, c.accept)
		if contentType != c.contentType {
			t.Errorf("%s: content type %s, want %s", c.accept, contentType, c.contentType)
		}
		if !strings.Contains(body, c.want) {
			t.Errorf("%s: no %q in:\n%s", c.accept, c.want, body)
		}
		if open := strings.HasPrefix(contentType, "application/"); open != strings.HasSuffix(body, "# EOF\n") || open == strings.Contains(body, "TYPE sglang:num_requests_total") {
			t.Errorf("%s: not of its format:\n%s", c.accept, body)
		}
	}
}

func TestPlainTextIsThePage(t *testing.T) {
	content, err := os.ReadFile("../testdata/vllm.metrics")
	if err != nil {
		t.Fatal(err)
	}
	contentType, body := PlainText(string(content), "application/openmetrics-text;version=1.0.0")
	if contentType != "text/plain; version=0.0.4; charset=utf-8" || body != string(content) {
		t.Errorf("%s:\n%s", contentType, body)
	}
}
