package scenarios

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/wva-project/wva/e2e/cluster"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

// history is the replicas of the sample's two variants over time.
type history struct {
	began     time.Time
	operators wvav1alpha1.OperatorServiceClient
	now       [2]int   // of cheap, expensive
	most      [2]int   // since the last mark
	changes   []string // since the last mark
}

// add takes over the replicas that were just read.
func (h *history) add(now [2]int) {
	for at, name := range []string{cheap, expensive} {
		if now[at] != h.now[at] {
			h.changes = append(h.changes, fmt.Sprintf("%5.1f s  %s %d to %d", time.Since(h.began).Seconds(), name, h.now[at], now[at]))
		}
		h.most[at] = max(h.most[at], now[at])
	}
	h.now = now
}

// mark begins a new part of the history.
func (h *history) mark() { h.most, h.changes = h.now, nil }

// watchFor follows the replicas of the sample for a while.
func (i *installation) watchFor(h *history, phase string, while time.Duration) {
	i.Helper()
	until := time.Now().Add(while)
	i.watchUntil(h, phase, func() bool { return time.Now().After(until) })
}

// watchUntil follows the replicas of the sample until a condition holds, and logs this part of the
// history with the decisions at its end.
func (i *installation) watchUntil(h *history, phase string, holds func() bool) {
	i.Helper()
	h.mark()
	eventually(i, patienceForSteps, phase, func() bool {
		h.add([2]int{i.replicas(cheap), i.replicas(expensive)})
		return holds()
	})
	for _, v := range i.decisions(h.operators) {
		i.Logf("%s: %s: %s %v", v.GetName(), v.GetReason(), v.GetMessage(), v.GetDetails())
	}
	i.done(fmt.Sprintf("%s: at most %v replicas, now %v\n%s", phase, h.most, h.now, strings.Join(h.changes, "\n")))
}

// A fleet of two variants without an objective and without a profile, as README's ScaledObject
// declares them. Each minimum is 1, so that both always have load.
func twoLoadedVariantsSettleAndFollowTheLoad(t *testing.T, c *cluster.Cluster) {
	i := newInstallationIn(t, c)
	ctx := t.Context()
	require.NoError(t, i.AwaitPrometheus(ctx))
	_, err := i.Kubectl(ctx, nil, "create", "namespace", sampleNamespace)
	require.NoError(t, err)
	require.NoError(t, i.Install(ctx, "--set", "config.profileCatalogue=off,rbac.clusterReader=true,watchNamespaces={"+sampleNamespace+"}"))
	i.done("chart: both servers are ready")
	require.NoError(t, i.Apply(ctx, "two-gpu-types", sampleNamespace))
	for _, name := range []string{cheap, expensive} {
		_, err := i.Kubectl(ctx, nil, "patch", "scaledobject", name, "--namespace", sampleNamespace, "--type", "json", "--patch", `[
			{"op": "remove", "path": "/spec/triggers/0/metadata/ttft"}, {"op": "remove", "path": "/spec/triggers/0/metadata/itl"},
			{"op": "replace", "path": "/spec/minReplicaCount", "value": 1}, {"op": "replace", "path": "/spec/maxReplicaCount", "value": 8}]`)
		require.NoError(t, err)
	}
	i.eventually("both serve", func() bool { return i.replicas(cheap) == 1 && i.replicas(expensive) == 1 })
	defer func() {
		if t.Failed() {
			t.Log(i.targetChanges())
		}
	}()

	// A replica serves 9 to 10 requests/s on L40S and 25 to 30 on H100.
	one, four := [2]int{1, 1}, [2]int{4, 4}
	h := history{began: time.Now(), operators: i.operators(), now: one}
	require.NoError(t, i.SetLoad(ctx, sampleModel, 20))
	i.watchFor(&h, "20 requests/s", 22*time.Second)
	require.Empty(t, h.changes, "one replica of each can serve it")
	few := i.capacityShares(h.operators)
	i.setMinimum(4)
	i.watchFor(&h, "20 requests/s, at least 4 replicas of each", 22*time.Second)
	require.Equal(t, four, h.most, "no climb to the maxima")
	// Windows of seconds are too noisy to compare capacities: the tests of package analyzer do.
	// Here the fleet must not need the additional replicas.
	for name, share := range i.capacityShares(h.operators) {
		t.Logf("%s: share of a replica %.3f of 1+1, %.3f of 4+4", name, few[name], share)
	}
	i.setMinimum(1)
	i.watchUntil(&h, "20 requests/s, one replica of each again", func() bool { return h.now == one })
	require.Equal(t, four, h.most, "no climb to the maxima")
	i.watchFor(&h, "20 requests/s, settled", settled)
	require.Empty(t, h.changes, "no flap")

	require.NoError(t, i.SetLoad(ctx, sampleModel, 60))
	i.watchUntil(&h, "60 requests/s: two replicas cannot serve it", func() bool { return h.now[0]+h.now[1] > 3 })
	i.watchFor(&h, "60 requests/s", 25*time.Second)
	require.NoError(t, i.SetLoad(ctx, sampleModel, 6))
	high := 0 // H100 that were decided for the load before
	i.watchUntil(&h, "6 requests/s, until all rates are of it", func() bool {
		arrivals, replicas := i.decisionOf(h.operators, expensive)
		high = max(high, replicas)
		return arrivals < 12
	})
	i.watchUntil(&h, "6 requests/s, one replica of each again", func() bool { return h.now == one })
	require.LessOrEqual(t, h.most[1], high, "no H100 is started for a load that has fallen")
	i.watchFor(&h, "6 requests/s, settled", settled)
	require.Empty(t, h.changes, "no flap")
}

// decisionOf returns the number of replicas of a variant, and the requests per second that its
// reason begins with; an infinite rate if there is none.
func (i *installation) decisionOf(operators wvav1alpha1.OperatorServiceClient, name string) (arrivals float64, replicas int) {
	i.Helper()
	arrivals = math.Inf(1)
	for _, v := range i.decisions(operators) {
		if rate, _, found := strings.Cut(v.GetMessage(), " req/s"); found && v.GetName() == name {
			if number, err := strconv.ParseFloat(rate, 64); err == nil {
				arrivals = number
			}
			replicas = int(v.GetDesiredReplicas())
		}
	}
	return arrivals, replicas
}

// setMinimum sets the minReplicaCount of both variants of the sample.
func (i *installation) setMinimum(replicas int) {
	i.Helper()
	for _, name := range []string{cheap, expensive} {
		i.change(name, fmt.Sprintf(`{"spec": {"minReplicaCount": %d}}`, replicas))
	}
}

// capacityShares returns which share of the model's demand a replica of each variant can serve.
func (i *installation) capacityShares(operators wvav1alpha1.OperatorServiceClient) map[string]float64 {
	i.Helper()
	shares := map[string]float64{}
	eventually(i, patience, "the capacity of both variants is known", func() bool {
		for _, v := range i.decisions(operators) {
			if v.CapacityShare != nil {
				shares[v.GetName()] = v.GetCapacityShare()
			}
		}
		return len(shares) == 2
	})
	i.Logf("shares of the demand that a replica can serve: %v", shares)
	return shares
}

// targetChanges returns the decisions that the servers logged.
func (i *installation) targetChanges() string {
	var lines []string
	for _, pod := range i.pods() {
		log, err := i.Kubectl(i.Context(), nil, "logs", pod.Name, "--namespace", "keda")
		if err != nil {
			lines = append(lines, err.Error())
		}
		for line := range strings.Lines(log) {
			if strings.Contains(line, "target changed") {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines, "")
}

// decisions returns the variants of the sample in the current plan; none if there is no answer.
func (i *installation) decisions(operators wvav1alpha1.OperatorServiceClient) []*wvav1alpha1.Variant {
	i.Helper()
	plan, err := operators.ListVariants(i.Context(), &wvav1alpha1.ListVariantsRequest{Namespace: sampleNamespace})
	if err != nil {
		i.Log(err)
	}
	return plan.GetVariants()
}

// operatorsPort is the port of the operators' API in a pod of wva.
const operatorsPort = 9091

// operators forwards a port to a pod of wva until the test ends.
func (i *installation) operators() wvav1alpha1.OperatorServiceClient {
	i.Helper()
	port, err := cluster.FreePort()
	require.NoError(i, err)
	pod := i.pods()[0].Name
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// it is killed
		_, _ = i.Kubectl(i.Context(), nil, "port-forward", "--namespace", "keda", "pod/"+pod, fmt.Sprintf("%d:%d", port, operatorsPort))
	}()
	connection, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", port), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(i, err)
	i.Cleanup(func() {
		require.NoError(i, connection.Close())
		<-ended // the context has ended
	})
	return wvav1alpha1.NewOperatorServiceClient(connection)
}
