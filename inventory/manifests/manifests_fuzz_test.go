package manifests

import (
	"reflect"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	goyaml "sigs.k8s.io/yaml/goyaml.v3"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/inventory/manifesttest"
)

func FuzzManifests(f *testing.F) {
	// Seeds are small: the fuzzer would spend its time shortening whole samples.
	for _, text := range []string{
		manifesttest.Scaled("a", "role: cook") + "\n---\n" + manifesttest.Deployment("a", 1, "command: [sh, -c, 'vllm serve --max-num-seqs ${N:-3}']"),
		manifesttest.ScaledTo("a", "{apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: a}"),
		"apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: a}\nspec: {leaderWorkerTemplate: {size: 2, workerTemplate: {}}}",
		manifesttest.Node("a", "NVIDIA-L4", "unschedulable: true") + "\n---\n" + manifesttest.GPUHolder("p", "a", 1, "phase: Running"),
		manifesttest.Pod{Name: "p", Owner: "ReplicaSet a-5f", Labels: "pod-template-hash: 5f", ReadyAt: "00:02:00"}.String(),
		manifesttest.Scaled("a") + "\n---\n" + manifesttest.Deployment("a", 1, "image: x") + "\n---\n" + manifesttest.HPA("cpu", "labels: {scaledobject.keda.sh/name: b}"),
		"apiVersion: keda.sh/v1alpha1\nkind: ScaledJob\nmetadata: {name: a}\nspec: {triggers: [{type: external, metadata: {modelID: m}}]}",
		manifesttest.Pod{Name: "p", Status: "containerStatuses: [{name: e, state: {waiting: {reason: ErrImagePull}}}]"}.String(),
		"apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: p}}]\n...\n--- text\n",
		`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"a"},"spec":{"replicas":3.5}}]}`,
		"a: &x [*x]\nb: *x",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkAliases(t, data)
		read := parse("f.yaml", data)
		var objects inventory.Objects
		for _, m := range read.manifests {
			objects.Append(m.objects)
		}
		tables := objects.Tables(inventory.Options{})
		for _, problem := range append(read.problems, tables.Problems...) {
			if problem.Object == "" || problem.Text == "" || problem.Remedy == "" || !utf8.ValidString(problem.String()) {
				t.Fatalf("problem %+v", problem)
			}
		}
		checkTables(t, tables)
		if again := objects.Tables(inventory.Options{}); !reflect.DeepEqual(again, tables) {
			t.Fatalf("the same objects, two tables:\n%+v\n%+v", tables, again)
		}
	})
}

// checkAliases compares the search for aliases with a YAML parser.
func checkAliases(t *testing.T, data []byte) {
	if !utf8.Valid(data) {
		return
	}
	for _, document := range splitDocuments(data) {
		var root goyaml.Node
		if goyaml.Unmarshal(document.data, &root) != nil {
			continue
		}
		if _, found := alias(document.data); !found && hasAlias(&root) {
			t.Fatalf("an alias was overlooked in %q", document.data)
		}
	}
}

func hasAlias(node *goyaml.Node) bool {
	if node.Kind == goyaml.AliasNode {
		return true
	}
	return slices.ContainsFunc(node.Content, hasAlias)
}

// checkTables fails if the tables break the rules in their comments.
func checkTables(t *testing.T, tables inventory.Tables) {
	for _, w := range tables.Workloads {
		if w.Replicas < 0 || w.Startup < 0 || w.Startup > 2*time.Hour || w.MaxSequences < 0 || !(w.KVTokens >= 0) || w.BatchedTokens < 0 || w.TensorParallel < 0 {
			t.Fatalf("workload %+v", w)
		}
	}
	for _, pool := range tables.Pools {
		if pool.Accelerator == "" || len(pool.Nodes) == 0 {
			t.Fatalf("pool %+v", pool)
		}
		for _, node := range pool.Nodes {
			if node.Allocatable < 0 || node.Allocated < 0 {
				t.Fatalf("node %+v", node)
			}
		}
	}
	snapshot := fleet.Snapshot{Workloads: tables.Workloads, Pools: tables.Pools}
	data, err := fleet.EncodeSnapshot(snapshot, nil)
	if err != nil {
		t.Fatalf("the tables cannot be dumped: %v", err)
	}
	if _, err := fleet.DecodeSnapshot(data, nil); err != nil {
		t.Fatalf("the dump cannot be read: %v\n%s", err, data)
	}
}
