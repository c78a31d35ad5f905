package collector

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func readAnswer(body string) ([]row, []string, error) {
	r := newRowReader(Options{NamespaceLabel: "namespace", PodLabel: "pod", ModelLabel: "model_name"})
	envelope, err := r.read(strings.NewReader(body))
	var subjects []string
	for _, s := range r.subjects {
		subjects = append(subjects, s.String())
	}
	return slices.Collect(r.all()), append(subjects, string(envelope)), err
}

// seriesOf is one series of an answer, with a part, a pod and further members.
func seriesOf(pod, members string) string {
	return `{"metric":{"wva_part":"running","namespace":"llm","pod":"` + pod + `","model_name":"m"},` + members + `}`
}

func vectorOf(series ...string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(series, ",") + "]}}\n"
}

// Partial is unknown: an answer that ends too early is none, wherever it ends.
func TestNoPartOfAnAnswerIsAnAnswer(t *testing.T) {
	whole := vectorOf(seriesOf("a", `"value":[1.5,"2"]`), seriesOf("b", `"values":[[1,"2"],[2,"NaN"]]`), seriesOf("c", `"histogram":[1,{"count":"1"}]`))
	found, _, err := readAnswer(whole)
	require.NoError(t, err)
	require.Len(t, found, 1)
	for i := range len(whole) - 1 {
		_, _, err := readAnswer(whole[:i])
		require.Error(t, asBadResponse(err), whole[:i])
	}
}

// A series that is not as Prometheus writes it makes no other series lost without an error.
func TestNoSeriesIsLostBesideAnother(t *testing.T) {
	for _, odd := range []string{
		`null`, `1`, `[]`, `"x"`, `{}`, `{"metric":null}`, `{"metric":{}}`, `{"metric":null,"value":[1,"1"]}`, `{"metric":[]}`, `{"metric":"x"}`,
		`{"metric":1,"value":[1,"1"]}`, `{"value":null}`, `{"value":1}`, `{"value":[]}`, `{"value":{}}`, `{"values":null}`, `{"values":{}}`, `{"values":1}`, `{"values":"x"}`,
		`{"values":[]}`, `{"values":[null]}`, `{"values":[1,"2"]}`, `{"values":[[1,"2"],null]}`, `{"metric":{"pod":null}}`, `{"metric":{"pod":{}}}`, `{"metric":{"other":{}}}`,
		seriesOf("x", `"value":[1,2]`), seriesOf("x", `"value":["1"]`), seriesOf("x", `"value":[1,"2","3"]`), seriesOf("x", `"value":[1,"1e999"]`), seriesOf("x", `"value":{"a":1,"b":"2"}`),
		seriesOf("x", `"value":[[1,"2"]]`), seriesOf(`\ud800`, `"value":[1,"2"]`),
	} {
		_, rest, err := readAnswer(vectorOf(seriesOf("a", `"value":[1,"1"]`), odd, seriesOf("b", `"value":[1,"1"]`), seriesOf("c", `"value":[1,"1"]`)))
		if err == nil {
			require.Subset(t, rest, []string{"llm/a", "llm/b", "llm/c"}, odd)
		}
	}
}
