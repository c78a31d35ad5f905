package app

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// arena is a cluster in virtual time: nodes, workloads with their pods, a scheduler, and a stand-in
// for KEDA and the HPA that carries out each decision at once.
type arena struct {
	now       time.Time
	nodes     []arenaNode
	workloads []*workload
	objects   []*scaled
	extra     []string // further objects of the hostile tenant
	bound     []*arenaPod
	made      int // pods so far
}

type arenaNode struct {
	name, product string
	gpus          int
}

// workload is a Deployment or StatefulSet.
type workload struct {
	namespace, name string
	stateful        bool
	replicas        int // of its spec
	gpus            int // of a replica
	product         string
	args            []string
	label           string // app of its pods; empty: its name
	grace, startup  time.Duration
	quota           int // pods that may be created
	pods            []*arenaPod
	deleted         bool
	load            engineLoad
}

type arenaPod struct {
	namespace, name, owner string
	stateful               bool
	product, node, label   string
	gpus                   int
	created, ready, gone   time.Time // ready and gone are zero while unknown
	failed                 bool
	counters               counters
}

// scaled is a ScaledObject of a workload.
type scaled struct {
	namespace, name, target string
	created                 time.Time
	min, max, idle          string            // as YAML; empty is none
	metadata                map[string]string // of the trigger
	annotations             map[string]string
	trigger                 string // its type; empty is external-push
	disobeys                bool   // its owner reverts each scale-down
	deleted                 bool
}

const (
	victimTenant  = "shop"
	hostileTenant = "greedy"
	productH100   = "NVIDIA-H100-80GB-HBM3"
	productL40S   = "NVIDIA-L40S"
	arenaStep     = 15 * time.Second
)

// arenaEpoch is a multiple of every step of the queries.
var arenaEpoch = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func (p *arenaPod) terminating() bool { return !p.gone.IsZero() }

func (p *arenaPod) isReady(now time.Time) bool {
	return !p.ready.IsZero() && !now.Before(p.ready)
}

// tick lets the controllers and the scheduler act.
func (a *arena) tick() {
	for _, w := range a.workloads {
		a.control(w)
	}
	a.workloads = slices.DeleteFunc(a.workloads, func(w *workload) bool { return w.deleted && len(w.pods) == 0 })
	a.schedule()
}

// control removes pods that have ended, and creates or deletes others: first those without a node,
// then those that are not ready, then the newest; of a StatefulSet the highest ordinals.
func (a *arena) control(w *workload) {
	w.pods = slices.DeleteFunc(w.pods, func(p *arenaPod) bool { return p.terminating() && !a.now.Before(p.gone) })
	stay := slices.DeleteFunc(slices.Clone(w.pods), (*arenaPod).terminating)
	wanted := min(w.replicas, w.quota)
	if w.deleted {
		wanted = 0
	}
	for ; len(stay) < wanted; a.made++ {
		p := &arenaPod{
			namespace: w.namespace, name: fmt.Sprintf("%s-5f-%d", w.name, a.made), owner: w.name, stateful: w.stateful, gpus: w.gpus, product: w.product,
			label: w.label, created: a.now,
		}
		if w.stateful {
			p.name = w.freeOrdinal()
			if p.name == "" {
				break
			}
		}
		w.pods, stay = append(w.pods, p), append(stay, p)
	}
	slices.SortStableFunc(stay, func(x, y *arenaPod) int {
		if w.stateful {
			return cmp.Or(cmp.Compare(len(y.name), len(x.name)), cmp.Compare(y.name, x.name))
		}
		return cmp.Or(boolOrder(x.node == "", y.node == ""), boolOrder(!x.isReady(a.now), !y.isReady(a.now)), y.created.Compare(x.created))
	})
	for _, p := range stay[:max(0, len(stay)-wanted)] {
		if p.gone = a.now; p.node != "" {
			p.gone = a.now.Add(w.grace)
		}
	}
}

// freeOrdinal returns the name of the next pod of a StatefulSet; empty while its predecessor is
// terminating.
func (w *workload) freeOrdinal() string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s-%d", w.name, i)
		at := slices.IndexFunc(w.pods, func(p *arenaPod) bool { return p.name == name })
		if at < 0 {
			return name
		}
		if w.pods[at].terminating() {
			return ""
		}
	}
}

func boolOrder(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// schedule places the pods that wait longest onto the nodes with the most free accelerators.
func (a *arena) schedule() {
	var waiting []*arenaPod
	for _, w := range a.workloads {
		for _, p := range w.pods {
			if p.node == "" && !p.terminating() {
				waiting = append(waiting, p)
			}
		}
	}
	slices.SortStableFunc(waiting, func(x, y *arenaPod) int { return x.created.Compare(y.created) })
	free := a.free()
	for _, p := range waiting {
		best := ""
		for _, node := range a.nodes {
			if node.product == p.product && free[node.name] >= p.gpus && (best == "" || free[node.name] > free[best]) {
				best = node.name
			}
		}
		if best != "" {
			free[best] -= p.gpus
			p.node, p.ready = best, a.now.Add(a.startup(p))
		}
	}
}

func (a *arena) startup(p *arenaPod) time.Duration {
	for _, w := range a.workloads {
		if w.namespace == p.namespace && w.name == p.owner {
			return w.startup
		}
	}
	return time.Minute
}

// free returns the accelerators of each node that no pod has.
func (a *arena) free() map[string]int {
	free := make(map[string]int, len(a.nodes))
	for _, node := range a.nodes {
		free[node.name] = node.gpus
	}
	for p := range a.allPods() {
		if p.node != "" && !p.failed {
			free[p.node] -= p.gpus
		}
	}
	return free
}

func (a *arena) allPods() func(func(*arenaPod) bool) {
	return func(yield func(*arenaPod) bool) {
		for _, w := range a.workloads {
			for _, p := range w.pods {
				if !yield(p) {
					return
				}
			}
		}
		for _, p := range a.bound {
			if !yield(p) {
				return
			}
		}
	}
}

func (a *arena) workload(namespace, name string) *workload {
	at := slices.IndexFunc(a.workloads, func(w *workload) bool { return w.namespace == namespace && w.name == name && !w.deleted })
	if at < 0 {
		return nil
	}
	return a.workloads[at]
}

// obey carries out a plan as KEDA and the HPA do. An object whose owner disobeys is not scaled
// down.
func (a *arena) obey(plan fleet.Plan) {
	numbers := make(map[fleet.VariantID]int, len(plan.Decisions))
	for _, d := range plan.Decisions {
		if d.Known && !d.Unsupported {
			numbers[d.Variant] = d.Replicas
		}
	}
	for _, o := range a.objects {
		n, decided := numbers[fleet.VariantID{Namespace: o.namespace, Name: o.name}]
		w := a.workload(o.namespace, o.target)
		if !decided || w == nil || o.disobeys && n < w.replicas {
			continue
		}
		w.replicas = n
	}
}
