package manifests

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func BenchmarkParse(b *testing.B) {
	data, err := os.ReadFile(filepath.Join(samples, "pods.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	data = append(data, "---\n"...)
	data = bytes.Repeat(data, 100)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if read := parse("f.yaml", data); len(read.manifests) != 300 {
			b.Fatal(len(read.manifests))
		}
	}
}
