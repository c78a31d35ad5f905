package simulation

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"strconv"

	"github.com/wva-project/wva/fleet"
)

// podState is the phase of a replica. removedBefore uses the order of the phases.
type podState uint8

const (
	pending  podState = iota // not scheduled
	loading                  // scheduled, not ready
	ready                    // takes requests
	draining                 // finishes its requests, gets no more
	gone
)

// variant is a variant with its state.
type variant struct {
	VariantSpec
	gateway  *gateway
	replicas int
	created  int     // replicas so far
	pods     []*pod  // that are not gone, the oldest first
	nodes    []*node // of its accelerator, by name; none: unlimited
	// replicaSeconds is how long the replicas that are gone were scheduled.
	replicaSeconds float64
	// pendingSeconds is how long the replicas that are not pending any more were pending.
	pendingSeconds float64
}

// pod is one replica.
type pod struct {
	variant   *variant
	name      string
	endpoint  string // of scrapes: namespace/name
	ordinal   int    // in order of creation, over the fleet
	state     podState
	node      *node // nil: not scheduled, or no node of the fleet has its accelerator
	created   float64
	scheduled float64
	readyAt   float64 // while loading, when it will be
	deadline  float64 // of its drain
	engine    engine
	scrape    scrapeLabels

	at    float64 // of its next event; +Inf: none
	place int     // in the event queue; -1: not in it
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
		name:    v.Target.Name + "-" + strconv.Itoa(v.created),
		ordinal: f.created,
		created: f.now,
		engine:  newEngine(v.VariantSpec, replicaDraws(f.seed, v.ID, v.created, iterationNoise)),
		at:      math.Inf(1),
		place:   -1,
	}
	p.endpoint = v.Target.Namespace + "/" + p.name
	p.readyAt = float64(v.Startup * replicaDraws(f.seed, v.ID, v.created, startupTime).lognormal(v.StartupSpread))
	v.created++
	f.created++
	v.pods = append(v.pods, p)
	return p
}

// hasGPUs reports whether GPUs are allocated to the replica.
func (p *pod) hasGPUs() bool { return p.state == loading || p.state == ready || p.state == draining }

// next returns the time of the next event of the replica, or +Inf.
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
