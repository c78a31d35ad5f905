package inventory

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plannedGroup is a node group of a random fleet: its nodes are alike, and one of them exists.
type plannedGroup struct {
	gpus, more int
	labels     map[string]string
}

// plannedQuota is a limit of accelerators of the groups with a label.
type plannedQuota struct {
	key, value string
	left       int
}

func (q plannedQuota) selects(g plannedGroup) bool { return q.key == "" || g.labels[q.key] == q.value }

// mostOf tries all numbers of nodes.
func mostOf(groups []plannedGroup, quotas []plannedQuota) (most int) {
	if len(groups) == 0 {
		return 0
	}
next:
	for nodes := range groups[0].more + 1 {
		rest := make([]plannedQuota, len(quotas))
		for i, q := range quotas {
			if q.selects(groups[0]) {
				q.left -= nodes * groups[0].gpus
			}
			if q.left < 0 {
				break next
			}
			rest[i] = q
		}
		most = max(most, nodes*groups[0].gpus+mostOf(groups[1:], rest))
	}
	return most
}

// The growth is never less than the nodes that Cluster Autoscaler may add, and no more than that if
// quotas are those of disjoint groups, and of all, and nodes are alike.
func TestGrowthWithinQuotasIsAsLargeAsAnyPlan(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 27 s under the race detector")
	}
	random := rand.New(rand.NewPCG(1, 2))
	exact, loose := 0, 0
	for range 3000 {
		groups, quotas := make([]plannedGroup, 1+random.IntN(4)), make([]plannedQuota, random.IntN(4))
		alike, nested := random.IntN(2) == 0, random.IntN(2) == 0
		var manifests, status []string
		existing := 0
		for i := range groups {
			labels := map[string]string{"x": fmt.Sprint(random.IntN(2)), "y": fmt.Sprint(random.IntN(3))}
			groups[i] = plannedGroup{4, random.IntN(4), labels}
			if !alike {
				groups[i].gpus = 1 + random.IntN(4)
			}
			existing += groups[i].gpus
			node := groupNode(fmt.Sprint("n", i), "NVIDIA-L40S", fmt.Sprintf("eks.amazonaws.com/nodegroup: g%d, x: '%s', y: '%s'", i, labels["x"], labels["y"]))
			manifests = append(manifests, strings.Replace(node, "nvidia.com/gpu: 4", fmt.Sprint("nvidia.com/gpu: ", groups[i].gpus), 1))
			status = append(status, nodeGroup(fmt.Sprintf("eks-g%d-1", i), 1+groups[i].more, "NoActivity"))
		}
		for i := range quotas {
			quotas[i] = plannedQuota{[]string{"x", ""}[random.IntN(2)], fmt.Sprint(random.IntN(2)), random.IntN(20)}
			if !nested {
				quotas[i].key = []string{"x", "y"}[random.IntN(2)]
			}
			selector, used := "", existing
			if quotas[i].key != "" {
				selector, used = fmt.Sprintf("{matchLabels: {%s: '%s'}}", quotas[i].key, quotas[i].value), 0
				for _, g := range groups {
					if quotas[i].selects(g) {
						used += g.gpus
					}
				}
			}
			manifests = append(manifests, capacityQuota(fmt.Sprint("q", i), selector, fmt.Sprint("nvidia.com/gpu: ", used+quotas[i].left)))
		}
		manifests = append(manifests, autoscalerStatus(status...))
		pool := objectsOf(t, manifests...).Tables(Options{}).Pools[0]
		most := mostOf(groups, quotas)
		switch {
		case pool.Adds < most:
			t.Fatalf("%d more, and a plan adds %d\n%s", pool.Adds, most, strings.Join(manifests, "\n---\n"))
		case pool.Adds > most && alike && nested:
			t.Fatalf("%d more, and no plan adds more than %d\n%s", pool.Adds, most, strings.Join(manifests, "\n---\n"))
		case pool.Adds > most:
			loose++
		default:
			exact++
		}
	}
	t.Logf("%d exact, %d larger", exact, loose)
	require.Greater(t, exact, loose*4)
}
