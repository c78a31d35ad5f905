package simulation

import (
	"cmp"
	"container/heap"
	"encoding/binary"
	"hash/fnv"
	"math"
	"strconv"

	"github.com/wva-project/wva/fleet"
)

// podState is where a replica stands in its life.
type podState uint8

const (
	pending  podState = iota // no accelerators yet
	loading                  // scheduled, not ready
	ready                    // takes requests
	draining                 // finishes what it has
	gone
)

// variant is a variant with its replicas.
type variant struct {
	VariantSpec
	gateway *gateway
	wanted  int
	made    int     // replicas so far
	pods    []*pod  // that are not gone, the oldest first
	nodes   []*node // of its accelerator, by name; none: any number of replicas finds room
	held    float64 // seconds that replicas which are gone were scheduled
	waited  float64 // seconds that replicas were pending which are not any more
}

// pod is one replica.
type pod struct {
	variant   *variant
	name      string
	ordinal   int // in order of creation, over the fleet
	state     podState
	node      *node // nil: none yet, or its accelerators are on no node of the fleet
	created   float64
	scheduled float64
	readyAt   float64 // while loading, when it will be
	deadline  float64 // of its drain
	engine    engine
	scrape    scrapeLabels

	at    float64 // of its next event; +Inf: none
	place int     // in the eventQueue; -1: not in it
}

// purpose separates the random streams of one replica.
type purpose uint8

const (
	startupTime purpose = iota
	iterationNoise
)

// replicaDraws returns the source of one purpose of the n-th replica of a variant.
func replicaDraws(seed uint64, id fleet.VariantID, n int, use purpose) draws {
	sum := fnv.New64a()
	name := append([]byte(id.String()), 0, byte(use))
	sum.Write(binary.BigEndian.AppendUint64(name, uint64(n)))
	return newDraws(seed, sum.Sum64())
}

func newPod(f *Fleet, v *variant) *pod {
	p := &pod{
		variant: v,
		name:    v.Target.Name + "-" + strconv.Itoa(v.made),
		ordinal: f.created,
		created: f.now,
		engine:  newEngine(v.VariantSpec, replicaDraws(f.seed, v.ID, v.made, iterationNoise)),
		at:      math.Inf(1),
		place:   -1,
	}
	p.readyAt = float64(v.Startup * replicaDraws(f.seed, v.ID, v.made, startupTime).spread(v.StartupSpread))
	v.made++
	f.created++
	v.pods = append(v.pods, p)
	return p
}

// hasGPUs reports whether the replica occupies GPUs.
func (p *pod) hasGPUs() bool { return p.state == loading || p.state == ready || p.state == draining }

// next returns when something happens to the replica by itself.
func (p *pod) next() float64 {
	switch p.state {
	case loading:
		return p.readyAt
	case ready:
		return p.engine.end
	case draining:
		return min(p.engine.end, p.deadline)
	case pending, gone:
	}
	return math.Inf(1)
}

// removedBefore orders replicas as a ReplicaSet removes them: those without a node first, then those that are not ready,
// then those ready for the shortest time, then the newest.
func removedBefore(a, b *pod) int {
	if a.state == ready && b.state == ready && a.readyAt != b.readyAt {
		return cmp.Compare(b.readyAt, a.readyAt)
	}
	return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(b.ordinal, a.ordinal))
}

// eventQueue is a heap of the replicas to which something will happen, the first on top; of two the one created first.
type eventQueue []*pod

// set puts a replica where its next event belongs.
func (a *eventQueue) set(p *pod) {
	p.at = p.next()
	switch {
	case math.IsInf(p.at, 1) && p.place >= 0:
		heap.Remove(a, p.place)
	case math.IsInf(p.at, 1):
	case p.place >= 0:
		heap.Fix(a, p.place)
	default:
		heap.Push(a, p)
	}
}

// first returns the time of the first event, or +Inf.
func (a *eventQueue) first() float64 {
	if len(*a) == 0 {
		return math.Inf(1)
	}
	return (*a)[0].at
}

// Len implements [heap.Interface].
func (a *eventQueue) Len() int { return len(*a) }

// Less implements [heap.Interface].
func (a *eventQueue) Less(i, j int) bool {
	x, y := (*a)[i], (*a)[j]
	if x.at != y.at {
		return x.at < y.at
	}
	return x.ordinal < y.ordinal
}

// Swap implements [heap.Interface].
func (a *eventQueue) Swap(i, j int) {
	(*a)[i], (*a)[j] = (*a)[j], (*a)[i]
	(*a)[i].place, (*a)[j].place = i, j
}

// Push implements [heap.Interface].
func (a *eventQueue) Push(x any) {
	p, _ := x.(*pod)
	p.place = len(*a)
	*a = append(*a, p)
}

// Pop implements [heap.Interface].
func (a *eventQueue) Pop() any {
	last := (*a)[len(*a)-1]
	(*a)[len(*a)-1] = nil
	*a = (*a)[:len(*a)-1]
	last.place = -1
	return last
}
