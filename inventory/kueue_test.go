package inventory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory/manifesttest"
)

// clusterQueue returns a ClusterQueue with flavors, each as "name nominal used" and its limits.
func clusterQueue(name, spec string, flavors ...string) string {
	var quotas, usage []string
	for _, flavor := range flavors {
		var of string
		var nominal, used int
		_, err := fmt.Sscanf(flavor, "%s %d %d", &of, &nominal, &used)
		if err != nil {
			panic(err)
		}
		_, limits, _ := strings.Cut(flavor, ";")
		quotas = append(quotas, fmt.Sprintf("{name: %s, resources: [{name: cpu, nominalQuota: 9}, {name: nvidia.com/gpu, nominalQuota: %d%s}]}", of, nominal, limits))
		usage = append(usage, fmt.Sprintf("{name: %s, resources: [{name: nvidia.com/gpu, total: %d}]}", of, used))
	}
	return fmt.Sprintf("apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: %s}\nspec: {%s resourceGroups: [{flavors: [%s]}]}\nstatus: {flavorsUsage: [%s]}",
		name, spec, strings.Join(quotas, ", "), strings.Join(usage, ", "))
}

const (
	localQueue = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: team, namespace: llm}\nspec: {clusterQueue: team-a}"
	h100Flavor = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: h100}\nspec: {nodeLabels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}"
	l4Flavor   = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: l4}\nspec: {nodeLabels: {nvidia.com/gpu.product: NVIDIA-L4}}"
	spotFlavor = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: spot}\nspec: {nodeLabels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, capacity: spot}}"
	cohortPart = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: all}\nspec: {parentName: company}"
)

// queued returns a variant on H100 whose Deployment is admitted by the queue.
func queued() []string {
	objects := deploymentOf("a")
	objects[1] = strings.Replace(objects[1], "metadata: {name: a,", "metadata: {name: a, labels: {kueue.x-k8s.io/queue-name: team},", 1)
	objects[1] = strings.Replace(objects[1], "containers:", "nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}\n      containers:", 1)
	return objects
}

func TestClusterQueueLimitsTheWorkloadsOfItsQueue(t *testing.T) {
	lender := func(spec string) string { return clusterQueue("team-b", "cohortName: all,", spec) }
	tests := []struct {
		name    string
		objects []string
		want    string // used, hard, resource and name; empty if there is no quota
	}{
		{"used up", []string{clusterQueue("team-a", "", "h100 8 8")}, "8 of 8 nvidia.com/gpu of flavor h100: ClusterQueue team-a"},
		{"some left", []string{clusterQueue("team-a", "", "h100 8 3")}, "3 of 8 nvidia.com/gpu of flavor h100: ClusterQueue team-a"},
		{"another flavor is that of other nodes", []string{clusterQueue("team-a", "", "h100 8 3", "l4 100 0")}, "3 of 8 nvidia.com/gpu of flavor h100: ClusterQueue team-a"},
		{"two flavors", []string{clusterQueue("team-a", "", "h100 8 3", "spot 4 1")}, "4 of 12 nvidia.com/gpu of flavors h100, spot: ClusterQueue team-a"},
		{"no flavor has the type", []string{clusterQueue("team-a", "", "l4 8 8")}, ""},
		{"a flavor that is not seen", []string{clusterQueue("team-a", "", "any 8 8")}, "8 of 8 nvidia.com/gpu of flavor any: ClusterQueue team-a"},
		{"the use is not counted yet", []string{strings.Replace(clusterQueue("team-a", "", "h100 8 3"), "flavorsUsage", "x", 1)}, ""},
		{"a reservation is more than the use", []string{strings.Replace(clusterQueue("team-a", "", "h100 8 3"), "status: {", "status: {flavorsReservation: [{name: h100, resources: [{name: nvidia.com/gpu, total: 6}]}], ", 1)}, "6 of 8 nvidia.com/gpu of flavor h100: ClusterQueue team-a"},
		{"it borrows what its cohort does not use", []string{clusterQueue("team-a", "cohortName: all,", "h100 8 8"), lender("h100 6 2")}, "8 of 12 nvidia.com/gpu of flavor h100: ClusterQueue team-a"},
		{"in the older version", []string{clusterQueue("team-a", "cohort: all,", "h100 8 8"), lender("h100 6 2")}, "8 of 12 nvidia.com/gpu of flavor h100: ClusterQueue team-a"},
		{"up to its limit", []string{clusterQueue("team-a", "cohortName: all,", "h100 8 8;, borrowingLimit: 3"), lender("h100 6 2")}, "8 of 11 nvidia.com/gpu of flavor h100: ClusterQueue team-a"},
		{"others have borrowed its own", []string{clusterQueue("team-a", "cohortName: all,", "h100 8 4"), lender("h100 6 10")}, "4 of 4 nvidia.com/gpu of flavor h100: ClusterQueue team-a"},
		{"but not the part that it does not lend", []string{clusterQueue("team-a", "cohortName: all,", "h100 8 4;, lendingLimit: 2"), lender("h100 6 8")}, "4 of 6 nvidia.com/gpu of flavor h100: ClusterQueue team-a"},
		{"the others lend a part", []string{clusterQueue("team-a", "cohortName: all,", "h100 8 8"), lender("h100 6 0;, lendingLimit: 2")}, "8 of 10 nvidia.com/gpu of flavor h100: ClusterQueue team-a"},
		{"of another cohort", []string{clusterQueue("team-a", "cohortName: own,", "h100 8 8"), lender("h100 6 2")}, "8 of 8 nvidia.com/gpu of flavor h100: ClusterQueue team-a"},
		{"the cohort has a parent, which may lend", []string{cohortPart, clusterQueue("team-a", "cohortName: all,", "h100 8 8"), lender("h100 6 2")}, ""},
		{"up to its limit from anywhere", []string{cohortPart, clusterQueue("team-a", "cohortName: all,", "h100 8 8;, borrowingLimit: 30"), lender("h100 6 2")}, "8 of 38 nvidia.com/gpu of flavor h100: ClusterQueue team-a"},
		{"a member is not counted yet", []string{clusterQueue("team-a", "cohortName: all,", "h100 8 8"), strings.Replace(lender("h100 6 2"), "flavorsUsage", "x", 1)}, ""},
		{"stopped", []string{clusterQueue("team-a", "stopPolicy: Hold,", "h100 8 3")}, "3 of 3 nvidia.com/gpu of flavor h100: ClusterQueue team-a (stopPolicy Hold)"},
		{"not stopped", []string{clusterQueue("team-a", "stopPolicy: None,", "h100 8 3")}, "3 of 8 nvidia.com/gpu of flavor h100: ClusterQueue team-a"},
		{"of another queue", []string{clusterQueue("team-b", "", "h100 8 8")}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects := slices.Concat(test.objects, queued(), []string{localQueue, h100Flavor, l4Flavor, spotFlavor})
			tables := objectsOf(t, objects...).Tables(Options{})
			require.Empty(t, tables.Problems)
			if test.want == "" {
				require.Empty(t, tables.Quotas)
				return
			}
			require.Len(t, tables.Quotas, 1)
			q := tables.Quotas[0]
			require.Equal(t, test.want, fmt.Sprintf("%d of %d %s: %s", q.Used, q.Hard, q.Resource, q.Name))
			require.True(t, q.Gates)
			require.Equal(t, usedBy("a", 2), q.Uses)
		})
	}
}

func TestLocalQueueMayBeStopped(t *testing.T) {
	objects := slices.Concat(queued(), []string{strings.Replace(localQueue, "spec: {", "spec: {stopPolicy: HoldAndDrain, ", 1), clusterQueue("team-a", "", "h100 8 3"), h100Flavor})
	rows := objectsOf(t, objects...).Tables(Options{}).Quotas
	require.Len(t, rows, 1)
	require.Equal(t, "LocalQueue team (stopPolicy HoldAndDrain)", rows[0].Name)
	require.Equal(t, rows[0].Used, rows[0].Hard)
}

func TestWorkloadWithoutAQueueIsNotLimited(t *testing.T) {
	tables := objectsOf(t, slices.Concat(deploymentOf("a"), []string{localQueue, clusterQueue("team-a", "", "h100 8 8"), h100Flavor})...).Tables(Options{})
	require.Empty(t, tables.Quotas)
	// the label may be that of the pods
	pods := deploymentOf("a")
	pods[1] = strings.Replace(pods[1], "template:", "template:\n    metadata: {labels: {kueue.x-k8s.io/queue-name: team}}", 1)
	tables = objectsOf(t, slices.Concat(pods, []string{localQueue, clusterQueue("team-a", "", "h100 8 8"), h100Flavor})...).Tables(Options{})
	require.Len(t, tables.Quotas, 1, manifesttest.Scaled("a"))
}

// BenchmarkQuotasOfACohort has 10,000 workloads in a cohort of 300 queues with eight flavors each:
// the cohort is added up once for each flavor. The bar is 200 ms.
func BenchmarkQuotasOfACohort(b *testing.B) {
	const queues, flavors, workloads = 300, 8, 10_000
	var k Kueue
	for i := range queues {
		queue := ClusterQueue{Name: fmt.Sprint("q", i), Cohort: "all"}
		for f := range flavors {
			queue.Quotas = append(queue.Quotas, FlavorQuota{Flavor: fmt.Sprint("f", f), Resource: nvidiaGPU, Nominal: 8, Counted: true})
		}
		k.Queues = append(k.Queues, queue)
		k.Locals = append(k.Locals, LocalQueue{Namespace: fmt.Sprint("n", i), Name: "team", Queue: queue.Name})
	}
	template := &corev1.PodTemplateSpec{}
	template.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{nvidiaGPU: resource.MustParse("1")}}}}
	for b.Loop() {
		all, names := quotaTable{}, k.byName()
		for i := range workloads {
			names.add(Target{ID: fleet.TargetID{Namespace: fmt.Sprint("n", i%queues), Name: fmt.Sprint(i)}, Queue: "team", Template: template}, "H100", Options{}, all)
		}
		if row := all.sorted()[0]; len(all) != queues || row.Hard != queues*flavors*8 {
			b.Fatal(len(all), row)
		}
	}
}
