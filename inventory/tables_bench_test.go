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

// BenchmarkTablesOfDevices has nodes with eight GPUs and eight pods each, by device plugins or by
// dynamic resource allocation.
func BenchmarkTablesOfDevices(b *testing.B) {
	const nodes, perNode = 2000, 8
	var plugins, devices []string
	for i := range nodes {
		name := fmt.Sprint("n", i)
		plugins = append(plugins, nodeWith(name, "nvidia.com/gpu.product: NVIDIA-L4", "nvidia.com/gpu: 8"))
		devices = append(devices, emptyNode(name, ""), manifesttest.ResourceSlice(name, manifesttest.GPUs("NVIDIA L4", perNode)...))
		for j := range perNode {
			pod := fmt.Sprint(name, "-", j)
			plugins = append(plugins, manifesttest.GPUHolder(pod, name, 1, "phase: Running"))
			claim := manifesttest.ResourceClaim(pod, "exactly: {deviceClassName: gpu.nvidia.com}", name, fmt.Sprint("gpu-", j))
			devices = append(devices, manifesttest.Claimer(pod, name, pod), claim)
		}
	}
	for name, manifests := range map[string][]string{"plugins": plugins, "devices": devices} {
		b.Run(name, func(b *testing.B) {
			objects := objectsOf(b, manifests...)
			b.ReportAllocs()
			for b.Loop() {
				tables := objects.Tables(Options{})
				if nodes := tables.Pools[0].Nodes; len(nodes) != 2000 || nodes[0].Allocated != perNode {
					b.Fatal(tables.Pools[0].Nodes[0])
				}
			}
		})
	}
}
