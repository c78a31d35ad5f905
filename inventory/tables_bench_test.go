package inventory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wva-project/wva/inventory/manifesttest"
)

func BenchmarkTables(b *testing.B) {
	for _, variants := range []int{1000, 10000} {
		b.Run(fmt.Sprint("variants=", variants), func(b *testing.B) {
			var text strings.Builder
			for i := range variants {
				name := fmt.Sprint("v", i)
				fmt.Fprintln(&text, manifesttest.Scaled(name)+"\n---\n"+manifesttest.Deployment(name, 5, "args: [--max-num-seqs=64], resources: {limits: {nvidia.com/gpu: 1}}"))
				for j := range 5 {
					p := manifesttest.Pod{Name: fmt.Sprint(name, "-5f-", j), Owner: "ReplicaSet " + name + "-5f", Labels: "pod-template-hash: 5f", ReadyAt: "00:02:00"}
					fmt.Fprintln(&text, "---\n"+p.String()+"---")
				}
			}
			objects := objectsOf(b, text.String())
			b.ReportAllocs()
			for b.Loop() {
				if tables := objects.Tables(Options{}); len(tables.Workloads) != variants {
					b.Fatal(len(tables.Workloads))
				}
			}
		})
	}
}

// BenchmarkTablesOfSelectors has targets of one namespace that select their pods, and one of a
// tenant whose selector matches all of them.
func BenchmarkTablesOfSelectors(b *testing.B) {
	for _, variants := range []int{100, 1000} {
		b.Run(fmt.Sprint("variants=", variants), func(b *testing.B) {
			manifests := []string{roleScaler("all", "fleet"), scaledRole("all", "00:00:00")}
			for i := range variants {
				name := fmt.Sprint("v", i)
				manifests = append(manifests, roleScaler(name, "fleet=f,role="+name), scaledRole(name, "00:00:01"))
				for j := range 5 {
					manifests = append(manifests, manifesttest.Pod{Name: fmt.Sprint(name, "-", j), Labels: "fleet: f, role: " + name}.String())
				}
			}
			objects := objectsOf(b, manifests...)
			for b.Loop() {
				if tables := objects.Tables(Options{}); len(tables.Workloads) != variants+1 {
					b.Fatal(len(tables.Workloads))
				}
			}
		})
	}
}
