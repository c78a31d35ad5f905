package prometheus

import (
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// input identifies the data of a decision on a variant: the instant of the queries, and the
// replicas that were seen. Servers see a change of the manifests at slightly different times.
type input struct {
	asked          time.Time
	variant        fleet.VariantID
	current, ready int32
}

// outcome is the decision on a variant.
type outcome struct {
	desired int32
	held    bool
	reason  string
}

// planLog is the decisions of a server.
type planLog struct {
	mu       sync.Mutex
	outcomes map[input]outcome
}

// keep logs every plan of a server until the test or the server ends.
func keep(t *testing.T, s *server) *planLog {
	l := &planLog{outcomes: map[input]outcome{}}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(polling)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				l.read(s)
			case <-s.ended:
				return
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-ended
	})
	return l
}

func (l *planLog) read(s *server) {
	plan, err := s.plan()
	if err != nil {
		return // it is not ready, or gone
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range plan.GetVariants() {
		key := input{
			asked:   plan.GetPlanTime().AsTime().Add(-lag).Truncate(interval),
			variant: fleet.VariantID{Namespace: v.GetNamespace(), Name: v.GetName()},
			current: v.GetCurrentReplicas(), ready: v.GetReadyReplicas(),
		}
		l.outcomes[key] = outcome{desired: v.GetDesiredReplicas(), held: v.GetHeld(), reason: v.GetMessage()}
	}
}

// shared returns the inputs that both logs have, and the decision in each.
func (l *planLog) shared(other *planLog) map[input][2]outcome {
	l.mu.Lock()
	mine := maps.Clone(l.outcomes)
	l.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	both := map[input][2]outcome{}
	for key, own := range mine {
		if theirs, found := other.outcomes[key]; found {
			both[key] = [2]outcome{own, theirs}
		}
	}
	return both
}
