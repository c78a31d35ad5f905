package app

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A move is one thing that the hostile tenant does. It draws from a generator of its own, so that a
// round without some of its moves has the others unchanged.
type move struct {
	name string
	do   func(r *round, random *rand.Rand)
}

// moves are all that the hostile tenant can do. Each stays within what Kubernetes lets the owner of
// a namespace do: it names its pods, labels and metrics as it likes, and Prometheus sets the labels
// of namespace and pod.
func moves() []move {
	return []move{
		{"creates a variant", createVariant},
		{"creates a variant", createVariant},
		{"creates a variant", createVariant},
		{"creates many variants", func(r *round, random *rand.Rand) {
			for range 4 + random.IntN(40) {
				createVariant(r, random)
			}
		}},
		{"deletes a ScaledObject and keeps its pods", func(r *round, random *rand.Rand) {
			if o := r.hostileObject(random); o != nil {
				o.deleted = true
			}
		}},
		{"deletes a workload", func(r *round, random *rand.Rand) {
			if w := r.hostileWorkload(random); w != nil {
				w.deleted = true
			}
		}},
		{"sets spec.replicas", func(r *round, random *rand.Rand) {
			if w := r.hostileWorkload(random); w != nil {
				w.replicas = pick(random, 0, 1, 3, 8, 40, 1000, math.MaxInt32)
			}
		}},
		{"disobeys scale-downs", func(r *round, random *rand.Rand) {
			if o := r.hostileObject(random); o != nil {
				o.disobeys = !o.disobeys
			}
		}},
		{"restarts its pods", func(r *round, random *rand.Rand) {
			if w := r.hostileWorkload(random); w != nil {
				for _, p := range w.pods {
					p.gone = r.now.Add(w.grace)
				}
			}
		}},
		{"changes its range", func(r *round, random *rand.Rand) {
			if o := r.hostileObject(random); o != nil {
				o.min = pick(random, "", "0", "0", "1", "8", "1000", "2147483647", "-1")
				o.max = pick(random, "", "1", "16", "16", "1000", "2147483647", "0")
				o.idle = pick(random, "", "", "", "0", "3")
			}
		}},
		{"annotates an object", func(r *round, random *rand.Rand) {
			if o := r.hostileObject(random); o != nil {
				o.annotations = map[string]string{pick(random,
					"autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas", "autoscaling.keda.sh/paused-scale-in",
					"autoscaling.keda.sh/paused-scale-out", "autoscaling.keda.sh/force-activation", "wva.dev/modelID",
				): pick(random, "true", "true", "false", "8", "1000", "2147483647", "-5", "x\ny")}
			}
		}},
		{"removes its annotations", func(r *round, random *rand.Rand) {
			if o := r.hostileObject(random); o != nil {
				o.annotations = nil
			}
		}},
		{"changes the metadata of a trigger", changeMetadata},
		{"changes the metadata of a trigger", changeMetadata},
		{"serves real requests", func(r *round, random *rand.Rand) {
			if w := r.hostileWorkload(random); w != nil {
				w.load.rate, w.load.forged = pick(random, 0.1, 3, 9, 12), nil
			}
		}},
		{"is idle", func(r *round, random *rand.Rand) {
			if w := r.hostileWorkload(random); w != nil {
				w.load.rate, w.load.waiting, w.load.forged = 0, 0, nil
			}
		}},
		{"forges a queue at its engines", func(r *round, random *rand.Rand) {
			if w := r.hostileWorkload(random); w != nil {
				w.load.waiting = pick(random, 1, 1000, 1e6, 1e18)
			}
		}},
		{"forges the metrics of its engines", forgeMetrics},
		{"forges the metrics of its engines", forgeMetrics},
		{"hides its engines", func(r *round, random *rand.Rand) {
			if w := r.hostileWorkload(random); w != nil {
				w.load.unwatched = !w.load.unwatched
			}
		}},
		{"starts a gateway of its own", forgeGateway},
		{"starts a gateway of its own", forgeGateway},
		{"stops its gateways", func(r *round, _ *rand.Rand) {
			for _, g := range r.gateways {
				g.gone = g.gone || g.namespace == hostileTenant
			}
		}},
		{"binds a pod to a node by itself", bindPod},
		{"adds further objects", addObjects},
		{"drains slowly", func(r *round, random *rand.Rand) {
			if w := r.hostileWorkload(random); w != nil {
				w.grace, w.startup = pick(random, 0, 2*time.Minute, time.Hour), pick(random, time.Second, time.Minute, 90*time.Minute)
			}
		}},
	}
}

// openings are the moves of the first cycles, which give the hostile tenant something to claim.
func openings() []move {
	return []move{
		{"creates a variant", createVariant},
		{"creates a variant of a model with requests", createServing},
		{"creates a variant of a model with requests", createServing},
		{"starts a gateway of its own", forgeGateway},
	}
}

// createServing creates a variant on the victim's accelerators that serves from the start.
func createServing(r *round, random *rand.Rand) {
	createVariant(r, random)
	w, o := r.arena.workloads[len(r.arena.workloads)-1], r.arena.objects[len(r.arena.objects)-1]
	w.product, w.replicas, w.load.rate, w.startup, w.grace = productH100, 1+random.IntN(8), pick(random, 3.0, 9, 12), arenaStep, arenaStep
	o.metadata["accelerator"], o.target, o.min = "H100", w.name, "0"
}

func pick[T any](random *rand.Rand, values ...T) T { return values[random.IntN(len(values))] }

// claimedModel returns a name that the hostile tenant has for a model; the victim's are among them.
func claimedModel(random *rand.Rand) string {
	if random.IntN(2) == 0 {
		return pick(random, "big", "big", "other")
	}
	return pick(random, "third", victimModel, victimModel, idleModel, "x\ny", strings.Repeat("n", 250), `"} or vector(1) #`)
}

// createVariant creates a workload with a ScaledObject.
func createVariant(r *round, random *rand.Rand) {
	r.named++
	name := fmt.Sprintf("v%d", r.named)
	stateful := random.IntN(4) == 0
	if stateful {
		name += "-set"
	}
	w := &workload{
		namespace: hostileTenant, name: name, stateful: stateful, replicas: pick(random, 0, 0, 1, 2, 8), gpus: pick(random, 1, 1, 2, 4),
		product: pick(random, productH100, productH100, productL40S), grace: 30 * time.Second, startup: time.Minute, quota: pick(random, 2, 8, 16),
		label: pick(random, "", "", "chat-h100"),
	}
	model := claimedModel(random)
	w.load = engineLoad{model: model, rate: pick(random, 0, 3.0, 9)}
	if random.IntN(4) == 0 {
		w.args = []string{pick(random, "--max-num-seqs=1", "--max-num-seqs=2147483647", "--max-num-batched-tokens=1", "--tensor-parallel-size=1000000",
			"--num-gpu-blocks-override=9223372036854775807", "--max-model-len=1e99")}
	}
	o := &scaled{
		namespace: hostileTenant, name: name, target: name, created: pick(random, r.now, arenaEpoch.Add(-1000*time.Hour)), max: pick(random, "16", "16", "2147483647"),
		min: pick(random, "0", "0", "0", "1", "8"), metadata: map[string]string{
			"scalerAddress": "wva:9090", "modelID": model, "accelerator": pick(random, "H100", "H100", "L40S"), "variantCost": pick(random, "0", "1", "10", "1000000000"),
		},
	}
	if w.product == productL40S {
		o.metadata["accelerator"] = "L40S"
	}
	if random.IntN(8) == 0 { // a second object of the same workload
		o.target = pick(random, "v1", "chat-h100", "nothing")
	}
	r.arena.workloads, r.arena.objects = append(r.arena.workloads, w), append(r.arena.objects, o)
}

func changeMetadata(r *round, random *rand.Rand) {
	o := r.hostileObject(random)
	if o == nil {
		return
	}
	values := map[string][]string{
		"serviceClass":     {"premium", "batch", "unheard-of"},
		"role":             {"prefill", "decode", "both"},
		"variantCost":      {"0", "1e-9", "1000000000", "NaN", "-1"},
		"gpusPerReplica":   {"1", "2", "8", "4096", "0"},
		"accelerator":      {"H100", "L40S", "h100", "B200", "NVIDIA-H100-80GB-HBM3"},
		"ttft":             {"1ms", "1h", "500ms"},
		"itl":              {"1ms", "40ms", "1h"},
		"percentile":       {"0.5", "0.999999"},
		"scaleToZeroAfter": {"10s", "720h"},
		"servedModelName":  {victimModel, idleModel, "big", "\x1b[31mred"},
		"modelID":          {victimModel, "big", "other", strings.Repeat("m", 256), "a;b\u2028c"},
		"profile":          {"alpha=1e-9", "alpha=1e9,beta=1e9", "alpha=6,beta=0.03,gamma=0.04,prefill=0.01,prefillSquared=0.8"},
		"engine":           {"vllm", "sglang", "other"},
		"precision":        {"fp8", "int1"},
	}
	var keys []string
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	key := pick(random, keys...)
	o.metadata[key] = pick(random, values[key]...)
}

func forgeMetrics(r *round, random *rand.Rand) {
	w := r.hostileWorkload(random)
	if w == nil {
		return
	}
	f := &forgery{engines: 1, growth: pick(random, 0, 0, 1, 1e6, 1e300, -5), resets: random.IntN(4) == 0}
	if random.IntN(2) == 0 {
		f.value, f.set = pick(random, 0, 1, -1, 1e6, 1e300, math.MaxFloat64, math.NaN(), math.Inf(1), math.Inf(-1)), true
	}
	switch random.IntN(5) {
	case 0:
		f.labels = map[string]string{pick(random, "exported_namespace", "server", "le", "wva_part", "wva_metric", "job"): pick(random, victimTenant, "NaN", "x\ny")}
	case 1:
		f.engines = 1 + random.IntN(20)
	case 2:
		f.twice = pick(random, "wva_part", "wva_metric", "wva_model", "engine", "target_model_name", "le")
	case 3:
		f.without = pick(random, "running", "waiting", "kv_cache", "first_token", "_bucket", "_total")
	}
	w.load.forged = f
	if random.IntN(3) == 0 {
		w.load.model = claimedModel(random)
	}
}

// forgeGateway starts a gateway that reports requests of any model.
func forgeGateway(r *round, random *rand.Rand) {
	r.named++
	g := &gateway{
		namespace: hostileTenant, name: fmt.Sprintf("gateway-%d", r.named), rate: pick(random, 0, 0.01, 20, 1e5, 1e300), queue: pick(random, 0, 1, 1000, 1e6, math.Inf(1), math.NaN(), -1),
	}
	for range 1 + random.IntN(3) {
		if model := claimedModel(random); !slices.Contains(g.models, model) {
			g.models = append(g.models, model)
		}
	}
	switch random.IntN(3) {
	case 0:
		g.labels = map[string]string{pick(random, "wva_part", "wva_model", "exported_namespace", "model_name"): pick(random, victimModel, "x\ny")}
	case 1:
		g.twice = pick(random, "wva_part", "wva_model", "wva_metric", "fairness_id", "target_model_name", "model_name")
	}
	r.gateways = append(r.gateways, g)
}

// bindPod names the node of a pod in its spec, past the scheduler. The kubelet rejects it if the
// node has too few accelerators.
func bindPod(r *round, random *rand.Rand) {
	r.named++
	node := r.arena.nodes[random.IntN(len(r.arena.nodes))]
	p := &arenaPod{
		namespace: hostileTenant, name: fmt.Sprintf("bound-%d", r.named), node: node.name, gpus: pick(random, 1, 8, 1000000), created: r.now,
		owner: pick(random, "", "chat-h100", "v1"), product: node.product,
	}
	if r.arena.free()[node.name] < p.gpus {
		p.failed = true
	} else {
		p.ready = r.now.Add(arenaStep)
	}
	r.arena.bound = append(r.arena.bound, p)
}

// addObjects adds objects of other kinds, and invalid ones.
func addObjects(r *round, random *rand.Rand) {
	r.named++
	target := "v1"
	if w := r.hostileWorkload(random); w != nil {
		target = w.name
	}
	r.arena.extra = append(r.arena.extra, pick(random,
		fmt.Sprintf("apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h%d, namespace: greedy}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}, maxReplicas: 900}\n", r.named, target),
		fmt.Sprintf("apiVersion: keda.sh/v1alpha1\nkind: ScaledJob\nmetadata: {name: j%d, namespace: greedy}\nspec: {triggers: [{type: external-push, metadata: {modelID: %s}}]}\n", r.named, victimModel),
		fmt.Sprintf("apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: w%d, namespace: greedy}\nspec: {scaleTargetRef: {name: %s}, triggers: [{type: external-push, metadata: {}}, {type: external, metadata: {modelID: 5}}]}\n", r.named, target),
		fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: dry%d, namespace: greedy, annotations: {wva.dev/modelID: %s, wva.dev/accelerator: H100}}\nspec: {replicas: 2147483647}\n", r.named, victimModel),
		fmt.Sprintf("apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: %s-%d, namespace: greedy}\nspec: {replicas: 2147483647, leaderWorkerTemplate: {size: 2147483647}}\n", target, r.named),
	))
}

func (r *round) hostileObject(random *rand.Rand) *scaled {
	var own []*scaled
	for _, o := range r.arena.objects {
		if o.namespace == hostileTenant && !o.deleted {
			own = append(own, o)
		}
	}
	if len(own) == 0 {
		return nil
	}
	return pick(random, own...)
}

func (r *round) hostileWorkload(random *rand.Rand) *workload {
	var own []*workload
	for _, w := range r.arena.workloads {
		if w.namespace == hostileTenant && !w.deleted {
			own = append(own, w)
		}
	}
	if len(own) == 0 {
		return nil
	}
	return pick(random, own...)
}
