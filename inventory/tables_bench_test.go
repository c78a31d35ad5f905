package inventory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func BenchmarkTables(b *testing.B) {
	for _, variants := range []int{1000, 10000} {
		b.Run(fmt.Sprint("variants=", variants), func(b *testing.B) {
			var text strings.Builder
			for i := range variants {
				name := fmt.Sprint("v", i)
				fmt.Fprintln(&text, scaled(name)+"\n---\n"+deployment(name, 5, "args: [--max-num-seqs=64], resources: {limits: {nvidia.com/gpu: 1}}"))
				for j := range 5 {
					p := pod{name: fmt.Sprint(name, "-5f-", j), owner: "ReplicaSet " + name + "-5f", labels: "pod-template-hash: 5f", readyAt: "00:02:00"}
					fmt.Fprintln(&text, "---\n"+p.String()+"---")
				}
			}
			read := readManifests("f.yaml", []byte(text.String()))
			if len(read.problems) > 0 {
				b.Fatal(read.problems[0])
			}
			var objects Objects
			for _, m := range read.manifests {
				objects.Append(m.objects)
			}
			b.ReportAllocs()
			for b.Loop() {
				if tables := objects.Tables(Options{}); len(tables.Workloads) != variants {
					b.Fatal(len(tables.Workloads))
				}
			}
		})
	}
}

func BenchmarkReadManifests(b *testing.B) {
	data, err := os.ReadFile(filepath.Join(samples, "pods.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	data = append(data, "---\n"...)
	data = bytes.Repeat(data, 100)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if read := readManifests("f.yaml", data); len(read.manifests) != 300 {
			b.Fatal(len(read.manifests))
		}
	}
}
