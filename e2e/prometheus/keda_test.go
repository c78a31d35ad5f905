package prometheus

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// polling is the interval at which a variant's number is asked for.
const polling = 250 * time.Millisecond

// follower scales like KEDA and an HPA without a stabilization window: it asks a server for numbers
// and applies them. On an error it keeps the last one.
type follower struct {
	engines *engines
	server  atomic.Pointer[server]

	mu      sync.Mutex
	answers []answer
}

// answer is a number that a server gave.
type answer struct {
	at       time.Time
	variant  fleet.VariantID
	replicas int
}

// follow applies the numbers of a server to the engines until the test ends.
func follow(t *testing.T, e *engines, s *server) *follower {
	f := &follower{engines: e}
	f.server.Store(s)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(polling)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f.poll(t)
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-ended
	})
	return f
}

func (f *follower) poll(t *testing.T) {
	for _, v := range variants() {
		at := time.Now()
		replicas, err := f.server.Load().desired(v.ID)
		if err != nil {
			continue
		}
		if err := f.engines.scale(v.ID, replicas); err != nil {
			t.Errorf("scaling %s to %d: %v", v.ID, replicas, err)
		}
		f.mu.Lock()
		f.answers = append(f.answers, answer{at, v.ID, replicas})
		f.mu.Unlock()
	}
}

// lowest returns the lowest number that was given for a variant since a time, once there are
// enough.
func (f *follower) lowest(t *testing.T, v fleet.VariantID, from time.Time) int {
	t.Helper()
	const enough = 20
	var given []int
	eventually(t, "numbers are given for "+v.Name, func() bool {
		given = f.since(v, from)
		return len(given) >= enough
	})
	return slices.Min(given)
}

// since returns the numbers that were given for a variant since a time.
func (f *follower) since(v fleet.VariantID, from time.Time) []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var given []int
	for _, a := range f.answers {
		if a.variant == v && !a.at.Before(from) {
			given = append(given, a.replicas)
		}
	}
	return given
}
