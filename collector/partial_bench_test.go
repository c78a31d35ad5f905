package collector

import (
	"strings"
	"testing"
)

// BenchmarkIsPartial reads a complete answer of 8 MiB, marked as VictoriaMetrics does it.
func BenchmarkIsPartial(b *testing.B) {
	row := `{"metric":{"namespace":"team-a","pod":"llama-8b-7c9f","model_name":"llama"},"value":[1,"1"]},`
	body := []byte(`{"status":"success","isPartial":false,"data":{"resultType":"vector","result":[` +
		strings.TrimSuffix(strings.Repeat(row, 8<<20/len(row)), ",") + `]}}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if isPartial(body) {
			b.Fatal("partial")
		}
	}
}
