package analyzer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// trial is a random fleet of one or two variants and a load that its smallest size serves
// comfortably.
type trial struct {
	engines []trueEngine
	least   []int // replicas of the smallest size
	speeds  []float64
	load    float64
	usual   float64 // the load of the smallest size over its true capacity
}

// newTrial draws a fleet. The catalogue's ratio is up to three times off, and more for replicas of
// several accelerators, because it assumes that throughput grows with their number.
func newTrial(random *rand.Rand) trial {
	t := trial{usual: 0.05 + 0.75*random.Float64()}
	first := randomEngine(random)
	for i := range 1 + random.IntN(2) {
		e := randomEngine(random)
		e.outputs, e.context = first.outputs, first.context // the same requests
		t.engines, t.least = append(t.engines, e), append(t.least, 1+random.IntN(3))
		wrong := math.Pow(3, 2*random.Float64()-1)
		t.speeds = append(t.speeds, wrong*float64(e.gpus)/e.alpha)
		if i > 0 && random.IntN(4) == 0 {
			t.speeds[i] = 0
		}
	}
	// The load at which the fullest variant is as full as usual.
	low, high := 0.0, 1e5
	for range 60 {
		t.load = (low + high) / 2
		fullest := 0.0
		for i, rate := range split(t.load, t.engines, t.least) {
			fullest = max(fullest, rate/t.engines[i].capacity())
		}
		if fullest < t.usual {
			low = t.load
		} else {
			high = t.load
		}
	}
	return t
}

// size returns the replicas of a fleet several times as large as the smallest one.
func (t trial) size(times int) []int {
	replicas := make([]int, len(t.least))
	for i, n := range t.least {
		replicas[i] = min(n*times, 40)
	}
	return replicas
}

// history returns the past of a fleet that had its smallest size within the long window, and no
// load at all before.
func (t trial) history() []seen {
	past := make([]seen, len(t.engines))
	for i, rate := range split(t.load, t.engines, t.least) {
		past[i] = seen{peak: rate, floor: tiny}
	}
	return past
}

func (t trial) String() string {
	return fmt.Sprintf("%+v, load %.3g/s, %.2f of the capacity of %v replicas, catalogue %.3g", t.engines, t.load, t.usual, t.least, t.speeds)
}

// trials runs a check on random fleets, and shows the first that fail.
func trials(t *testing.T, n int, check func(random *rand.Rand, fleet trial) error) {
	t.Helper()
	failed := 0
	for i := range n {
		random := rand.New(rand.NewPCG(14, uint64(i)))
		fleet := newTrial(random)
		if err := check(random, fleet); err != nil {
			if failed++; failed <= 3 {
				t.Errorf("fleet %d: %v\n%v", i, err, fleet)
			}
		}
	}
	if failed > 0 {
		t.Errorf("%d of %d fleets fail", failed, n)
	}
}

func TestSameLoadOnMoreReplicasNeverLowersTheCapacityOfOne(t *testing.T) {
	trials(t, 2000, func(random *rand.Rand, fleet trial) error {
		past, highest := fleet.history(), make([]float64, len(fleet.engines))
		for _, times := range []int{1, 2, 3, 5, 8, 13, 20, 40} {
			m, _ := steady(fleet.load, fleet.engines, fleet.size(times), fleet.speeds, past, 0, random)
			for i, c := range Analyze(m, Options{}) {
				rate := c.Share.Or(0) * fleet.load
				if rate < 0.95*highest[i] {
					return fmt.Errorf("%v replicas: variant %d can serve %.3g/s each, limited by %s, and %.3g/s with fewer replicas", fleet.size(times), i, rate, c.LimitedBy, highest[i])
				}
				highest[i] = max(highest[i], rate)
			}
		}
		return nil
	})
}

func TestReplicasThatServeTheirLoadComfortablyAreEnough(t *testing.T) {
	for _, noise := range []float64{0, 0.03} {
		// Whether the long window has only this state.
		for _, forgotten := range []bool{false, true} {
			t.Run(fmt.Sprintf("noise %v, only this load seen %v", noise, forgotten), func(t *testing.T) {
				trials(t, 2000, func(random *rand.Rand, fleet trial) error {
					for _, times := range []int{1, 2, 5, 13, 40} {
						past := fleet.history()
						if forgotten {
							past = make([]seen, len(fleet.engines))
						}
						replicas := fleet.size(times)
						m, _ := steady(fleet.load, fleet.engines, replicas, fleet.speeds, past, noise, random)
						var total float64
						for i, c := range Analyze(m, Options{}) {
							total += c.Share.Or(0) * float64(replicas[i])
						}
						least := 1.0
						if times == 1 { // at 0.8 of the capacity noise may ask for more
							least -= 5 * noise
						}
						if total < least {
							return fmt.Errorf("%v replicas can serve %.3g of the load that they serve", replicas, total)
						}
					}
					return nil
				})
			})
		}
	}
}

// The capacity is at most 5 % above the true one. It is at least three quarters of it, or of twice
// the highest rate that was seen, unless another variant is full first.
func TestCapacityIsNearTheTruth(t *testing.T) {
	trials(t, 2000, func(random *rand.Rand, fleet trial) error {
		for _, times := range []int{1, 2, 5} {
			replicas := fleet.size(times)
			past := fleet.history()
			m, rates := steady(fleet.load, fleet.engines, replicas, fleet.speeds, past, 0, random)
			for i, c := range Analyze(m, Options{}) {
				rate, right := c.Share.Or(0)*fleet.load, fleet.engines[i].capacity()
				if enough := rates[i]*float64(replicas[i]) >= minRequests; enough && rate > 1.05*right {
					return fmt.Errorf("%v replicas: variant %d can serve %.3g/s by %s, more than %.3g/s (now %.3g/s)", replicas, i, rate, c.LimitedBy, right, rates[i])
				}
				if least := 0.95 * unevenShare * min(right, maxExtrapolation*past[i].peak); rate < least && c.LimitedBy != LimitRouting {
					return fmt.Errorf("%v replicas: variant %d can serve %.3g/s by %s, less than %.3g/s (now %.3g/s, peak %.3g/s, right %.3g)", replicas, i, rate, c.LimitedBy, least, rates[i], past[i].peak, right)
				}
			}
		}
		return nil
	})
}
