package simulation

import (
	"math"
	"slices"
)

// gateway routes the requests of one model to its replicas, and queues those that no ready replica
// can take.
type gateway struct {
	ModelSpec
	served  string // the model's name in metrics
	routing Routing
	// kvBlocks is the KV cache size of the variant with the largest one, in blocks.
	kvBlocks int

	pods   []*pod      // that are ready, in the order in which they became ready
	cursor int         // into pods, modulo their number: the first of the next choice
	queue  []*sequence // in order of arrival

	arrived, answered, lost int // requests
}

// fits reports whether a request fits into the KV cache of any variant of the model.
func (g *gateway) fits(s *sequence) bool { return blocksOf(s.longest()) <= g.kvBlocks }

// choose returns the replica for a sequence, and whether there is one.
func (g *gateway) choose(s *sequence) (*pod, bool) {
	var best *pod
	chosen := 0
	for i := range g.pods {
		at := (g.cursor + i) % len(g.pods)
		p := g.pods[at]
		if !p.engine.fits(s) || best != nil && !g.prefers(p, best) {
			continue
		}
		best, chosen = p, at
		if g.routing == RoundRobin {
			break
		}
	}
	if best != nil {
		g.cursor = (chosen + 1) % len(g.pods)
	}
	return best, best != nil
}

// prefers reports whether a replica has less to do than another.
func (g *gateway) prefers(p, other *pod) bool {
	if g.routing == LeastKV {
		if mine, its := p.engine.claimed(), other.engine.claimed(); mine != its {
			return mine < its
		}
	}
	return p.engine.inFlight() < other.engine.inFlight()
}

func (g *gateway) full() bool { return g.MaxQueue > 0 && len(g.queue) >= g.MaxQueue }

// expiry returns when the first request of the queue times out, or +Inf.
func (g *gateway) expiry() float64 {
	if g.Patience == 0 || len(g.queue) == 0 {
		return math.Inf(1)
	}
	return g.queue[0].Arrival + g.Patience
}

func (g *gateway) join(p *pod) { g.pods = append(g.pods, p) }

func (g *gateway) leave(p *pod) {
	at := slices.Index(g.pods, p)
	g.pods = slices.Delete(g.pods, at, at+1)
	if g.cursor > at {
		g.cursor--
	}
}
