package wva_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// operatorPages are the pages whose facts are compared with the product.
func operatorPages() []string {
	return []string{
		"README.md", "docs/quickstart.md", "docs/concepts.md", "docs/cluster.md", "docs/operations.md", "docs/failure-modes.md",
		"docs/troubleshooting.md", "docs/security.md", "deploy/samples/README.md",
	}
}

var (
	metricName = regexp.MustCompile(`\bwva_[a-z_]+[a-z]\b`)
	codeName   = regexp.MustCompile("^[A-Z](?:[a-z]+[A-Z]|[A-Z]+[a-z])[A-Za-z]*$")
	settingKey = regexp.MustCompile(`^[a-z][A-Za-z]+(?:\.[a-z][A-Za-z]+)+$`)
	wordsOfUs  = regexp.MustCompile(`^[a-z][a-z']* [^{}<>=]*$`)
)

// othersNames are the names of KEDA, Kubernetes, gRPC and Prometheus on these pages, and those of
// the product's API and conditions.
func othersNames() []string {
	return []string{
		"KEDAScalerFailed", "ScaledObject", "ListVariants", "AutoscalerActive", "DefinitionAccepted", "OptimizationReady", "TargetResolved",
		"MetricsAvailable", "ScalingActive", "ScalingDisabled", "AbleToScale", "ReplicaFailure", "FailedPrecondition", "InvalidArgument",
		"DeadlineExceeded", "ResourceExhausted", "ClusterTriggerAuthentication", "HPAConfigurableTolerance", "FromEnv", "OOMKilled",
	}
}

// othersTexts begin the messages and commands of others on these pages.
func othersTexts() []string {
	return []string{
		"kubectl ", "helm ", "go run ", "make ", "wvactl ", "wva ", "got empty metric spec", "no metric specs returned", "connection refused",
		"no such host", "unable to fetch metrics from external", "curl ", "git ",
	}
}

// spans returns the code spans of a page, outside blocks.
func spans(t *testing.T, page string) []string {
	t.Helper()
	var found []string
	for _, span := range codeSpan.FindAll(fence.ReplaceAll(readFile(t, page), nil), -1) {
		found = append(found, strings.Trim(string(span), "`"))
	}
	return found
}

func startsWithAny(text string, beginnings []string) bool {
	return slices.ContainsFunc(beginnings, func(begin string) bool { return strings.HasPrefix(text, begin) })
}

func TestPagesNameMetricsOfTheProduct(t *testing.T) {
	reference, found := readFile(t, "docs/reference/metrics.md"), 0
	for _, page := range operatorPages() {
		for _, name := range metricName.FindAll(readFile(t, page), -1) {
			if found++; !bytes.Contains(reference, append(append([]byte("`"), name...), '`')) {
				t.Errorf("%s: there is no metric %s", page, name)
			}
		}
	}
	t.Logf("%d names", found)
	if found < 30 {
		t.Errorf("%d names of metrics were found; are they read?", found)
	}
}

func TestPagesNameCodesOfTheProduct(t *testing.T) {
	reference, alerts, found := readFile(t, "docs/reference/reasons.md"), readFile(t, "docs/operations.md"), 0
	for _, page := range operatorPages() {
		for _, span := range spans(t, page) {
			if !codeName.MatchString(span) || slices.Contains(othersNames(), span) || testName.MatchString("`"+span+"`") {
				continue
			}
			if found++; !bytes.Contains(reference, []byte("`"+span+"`")) && !bytes.Contains(alerts, []byte("{alert: "+span+",")) {
				t.Errorf("%s: %s is neither the code of a reason nor an alert", page, span)
			}
		}
	}
	t.Logf("%d codes", found)
	if found < 60 {
		t.Errorf("%d codes were found; are they read?", found)
	}
}

func TestPagesNameSettingsOfTheProduct(t *testing.T) {
	reference, found := readFile(t, "docs/configuration.md"), 0
	for _, page := range operatorPages() {
		for _, span := range spans(t, page) {
			section, _, _ := strings.Cut(span, ".")
			if !settingKey.MatchString(span) || !bytes.Contains(reference, []byte("`"+section+".")) {
				continue // a field of another object
			}
			if found++; !bytes.Contains(reference, []byte("`"+span+"`")) && !bytes.Contains(reference, []byte("`"+span+".")) {
				t.Errorf("%s: there is no setting %s", page, span)
			}
		}
	}
	t.Logf("%d settings", found)
	if found < 20 {
		t.Errorf("%d settings were found; are they read?", found)
	}
}

// TestPagesQuoteTextsOfTheProduct looks in the source for each quoted message. An ellipsis stands
// for values in it.
func TestPagesQuoteTextsOfTheProduct(t *testing.T) {
	var source []byte
	for _, path := range filesBelow(t, ".", ".go") {
		if !strings.HasSuffix(path, "_test.go") {
			source = append(source, readFile(t, path)...)
		}
	}
	found := 0
	for _, page := range []string{"docs/failure-modes.md", "docs/troubleshooting.md", "docs/operations.md", "docs/quickstart.md"} {
		for _, span := range spans(t, page) {
			if !wordsOfUs.MatchString(strings.TrimLeft(span, "… ;")) || startsWithAny(span, othersTexts()) {
				continue
			}
			found++
			for part := range strings.SplitSeq(span, "…") {
				if part = strings.Trim(part, " ;:"); part != "" && !bytes.Contains(source, []byte(part)) {
					t.Errorf("%s: %q is in no text of the product", page, part)
				}
			}
		}
	}
	t.Logf("%d texts", found)
	if found < 60 {
		t.Errorf("%d texts were found; are they read?", found)
	}
}

// TestPictureShowsADecisionOfTheTests compares the picture with the plan that a test of the planner
// makes of the snapshot that docs/concepts.md names.
func TestPictureShowsADecisionOfTheTests(t *testing.T) {
	const snapshot = "planner/testdata/spill-to-the-fast-variant.snapshot.json"
	if !bytes.Contains(readFile(t, "docs/concepts.md"), []byte(snapshot)) {
		t.Errorf("docs/concepts.md does not name %s", snapshot)
	}
	var plan struct {
		Decisions []struct {
			Replicas int
			Reason   struct{ Code, Text string }
		}
		Cost float64
	}
	if err := json.Unmarshal(readFile(t, strings.Replace(snapshot, ".snapshot.", ".plan.", 1)), &plan); err != nil {
		t.Fatal(err)
	}
	shown := []string{fmt.Sprintf(">%.2f an hour<", plan.Cost), fmt.Sprintf(">%d × L40S + %d × H100<", plan.Decisions[0].Replicas, plan.Decisions[1].Replicas)}
	for _, d := range plan.Decisions {
		shown = append(shown, ">"+d.Reason.Code+"<", ">"+d.Reason.Text+"<")
	}
	picture := readFile(t, "docs/images/decision.svg")
	for _, text := range shown {
		if !bytes.Contains(picture, []byte(text)) {
			t.Errorf("docs/images/decision.svg does not show %q", text)
		}
	}
}

func TestFactsOfPagesAreRecognized(t *testing.T) {
	for _, test := range []struct {
		pattern *regexp.Regexp
		yes, no []string
	}{
		{codeName, []string{"MetricsMissing", "HPAMissing", "SLOMissed"}, []string{"Paused", "HPA", "wva_x", "maxReplicaCount"}},
		{settingKey, []string{"scaleDown.headroom", "grpc.tls.allowedClients"}, []string{"headroom", "x/y.z"}},
		{wordsOfUs, []string{"variant held", "the latest plan is"}, []string{"held", "a{b}", "Unavailable now"}},
	} {
		for _, text := range test.yes {
			if !test.pattern.MatchString(text) {
				t.Errorf("%v does not find %q", test.pattern, text)
			}
		}
		for _, text := range test.no {
			if test.pattern.MatchString(text) {
				t.Errorf("%v finds %q", test.pattern, text)
			}
		}
	}
}
