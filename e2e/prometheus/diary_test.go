package prometheus

import (
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// moment is what a decision on a variant came from: the instant that Prometheus was asked about, and the replicas that were
// seen. Servers see a change of the manifests a little apart.
type moment struct {
	asked          time.Time
	variant        fleet.VariantID
	current, ready int32
}

// entry is what a plan says of a variant.
type entry struct {
	desired int32
	held    bool
	reason  string
}

// diary is what the plans of a server have said.
type diary struct {
	mu      sync.Mutex
	entries map[moment]entry
}

// keep writes down every plan of a server until the test ends, or the server does.
func keep(t *testing.T, s *server) *diary {
	d := &diary{entries: map[moment]entry{}}
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

func (d *diary) read(s *server) {
	plan, err := s.plan()
	if err != nil {
		return // it is not ready, or gone
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range plan.GetVariants() {
		m := moment{
			asked:   plan.GetPlanTime().AsTime().Add(-lag).Truncate(interval),
			variant: fleet.VariantID{Namespace: v.GetNamespace(), Name: v.GetName()},
			current: v.GetCurrentReplicas(), ready: v.GetReady(),
		}
		d.entries[m] = entry{desired: v.GetDesiredReplicas(), held: v.GetHeld(), reason: v.GetReasonText()}
	}
}

// shared returns the moments of which both diaries tell, and what each says.
func (d *diary) shared(other *diary) map[moment][2]entry {
	d.mu.Lock()
	mine := maps.Clone(d.entries)
	d.mu.Unlock()
	other.mu.Lock()
	defer other.mu.Unlock()
	both := map[moment][2]entry{}
	for m, e := range mine {
		if o, found := other.entries[m]; found {
			both[m] = [2]entry{e, o}
		}
	}
	return both
}
