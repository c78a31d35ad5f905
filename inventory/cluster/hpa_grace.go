package cluster

import (
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
)

// autoscalerGrace is how long KEDA and the HPA controller may need to follow a change. A shorter
// interruption is not reported.
const autoscalerGrace = 2 * time.Minute

// unfollowed is a number that no HPA follows.
type unfollowed struct {
	state fleet.Autoscaler
	since time.Time
}

// confirmAutoscalers removes the states that are younger than autoscalerGrace, and returns the time
// until the next of them is old enough; zero if there is none. At the first rebuild an HPA that is
// missing counts as missing since the ScaledObject was created. While the cause stays, the text of
// the first message does too: later ones differ in port numbers and the like.
func (c *Cluster) confirmAutoscalers(variants []fleet.Variant, now time.Time, isFirst bool) (next time.Duration) {
	current := map[fleet.VariantID]unfollowed{}
	for i := range variants {
		v := &variants[i]
		if v.Autoscaler.Code == "" {
			continue
		}
		u := unfollowed{v.Autoscaler, now}
		if before, known := c.unfollowed[v.ID]; known {
			u = before.next(v.Autoscaler)
		} else if isFirst && u.state.Code == fleet.CodeHPAMissing {
			u.since = earlier(v.Created, now)
		}
		current[v.ID], v.Autoscaler = u, u.state
		if wait := u.since.Add(autoscalerGrace).Sub(now); wait > 0 {
			v.Autoscaler = fleet.Autoscaler{}
			if next == 0 || wait < next {
				next = wait
			}
		}
	}
	c.unfollowed = current
	return next
}

// earlier returns the first of two times. The clock of the API server may be ahead.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// next returns the same number with its present state.
func (u unfollowed) next(state fleet.Autoscaler) unfollowed {
	cause := func(text string) string { head, _, _ := strings.Cut(text, ": "); return head }
	if state.Code != u.state.Code || cause(state.Text) != cause(u.state.Text) {
		u.state = state
	}
	return u
}
