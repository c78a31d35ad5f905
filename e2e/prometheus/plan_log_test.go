package prometheus

import (
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// input is what a decision on a variant came from: the instant that Prometheus was asked about, and the replicas that were
// seen. Servers see a change of the manifests a little apart.
type input struct {
	asked          time.Time
	variant        fleet.VariantID
	current, ready int32
}

// outcome is what a plan says of a variant.
type outcome struct {
	desired int32
	held    bool
	reason  string
}

// planLog is what the plans of a server have said.
type planLog struct {
	mu       sync.Mutex
	outcomes map[input]outcome
}

// keep writes down every plan of a server until the test ends, or the server does.
func keep(t *testing.T, s *server) *planLog {
	d := &planLog{outcomes: map[input]outcome{}}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(polling)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				d.read(s)
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
	return d
}

func (d *planLog) read(s *server) {
	plan, err := s.plan()
	if err != nil {
		return // it is not ready, or gone
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range plan.GetVariants() {
		m := input{
			asked:   plan.GetPlanTime().AsTime().Add(-lag).Truncate(interval),
			variant: fleet.VariantID{Namespace: v.GetNamespace(), Name: v.GetName()},
			current: v.GetCurrentReplicas(), ready: v.GetReadyReplicas(),
		}
		d.outcomes[m] = outcome{desired: v.GetDesiredReplicas(), held: v.GetHeld(), reason: v.GetMessage()}
	}
}

// shared returns the moments of which both logs run, and what each says.
func (d *planLog) shared(other *planLog) map[input][2]outcome {
	d.mu.Lock()
	mine := maps.Clone(d.outcomes)
	d.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	both := map[input][2]outcome{}
	for m, e := range mine {
		if o, found := other.outcomes[m]; found {
			both[m] = [2]outcome{e, o}
		}
	}
	return both
}
