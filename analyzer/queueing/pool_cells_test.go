package queueing_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/wva-project/wva/simulation"
)

// poolEngines and poolUses are those of the grid without its reference data.
var poolEngines = map[string]engine{
	"H100": {alpha: 6e-3, beta: 8e-6, gamma: 42e-9, b: 13e-6, c: 0.8e-9},
	"A100": {alpha: 11e-3, beta: 28e-6, gamma: 81e-9, b: 48e-6, c: 1.8e-9},
	"L40S": {alpha: 22e-3, beta: 27e-6, gamma: 200e-9, b: 42e-6, c: 3.5e-9},
}

var poolUses = map[string][]lengthPair{
	"chat": generated(5, lognormal{mean: 1155, sigma: 0.8, most: 4200}, lognormal{mean: 211, sigma: 0.8, most: 1000}),
	"code": generated(1, lognormal{mean: 2000, sigma: 0.75, most: 8192}, lognormal{mean: 28, sigma: 1.24, most: 2000}),
	"long": generated(2, lognormal{mean: 8000, sigma: 0.5}, lognormal{mean: 300, sigma: 0.7}),
}

// poolCell is one pool: the replicas of each accelerator, the requests and the objective.
type poolCell struct {
	use          string
	accelerators []string
	replicas     []int
	ttft, itl    float64 // milliseconds
	level        float64
	variation    float64 // index of dispersion of the arrivals at the gateway
	kv           int     // KV cache size of a replica in tokens; 0: no limit
	routing      simulation.Routing
}

// manySlots is a KV cache that never limits.
const manySlots = 20_000_000

// name is a cell's columns in the file, but for the answer.
func (c *poolCell) name() []string {
	counts := make([]string, len(c.replicas))
	for i, n := range c.replicas {
		counts[i] = strconv.Itoa(n)
	}
	return []string{
		c.use, strings.Join(c.accelerators, "+"), strings.Join(counts, "+"), fmt.Sprint(c.ttft), fmt.Sprint(c.itl),
		fmt.Sprint(c.level), fmt.Sprint(c.variation), fmt.Sprint(c.kv), [...]string{"least requests", "round robin"}[c.routing],
	}
}

// meanRate is the sum of the replicas' rates by means.
func (c *poolCell) meanRate() (sum float64) {
	for i, name := range c.accelerators {
		q := question{engine: poolEngines[name], objective: objective{tpot: c.itl / 1e3}, mix: poolUses[c.use]}
		q.sequences, q.kv = 256, float64(c.kv)
		sum += float64(c.replicas[i]) * q.meanRate()
	}
	return sum
}

func (c *poolCell) size() (n int) {
	for _, k := range c.replicas {
		n += k
	}
	return n
}

// poolCells are the pools with a known truth.
func poolCells() (all []*poolCell) {
	limits := map[string][2][2]float64{ // TTFT and ITL
		"chat H100": {{1000, 25}, {300, 50}}, "chat L40S": {{1000, 60}, {800, 100}},
		"code H100": {{1000, 25}, {300, 50}}, "code L40S": {{1000, 60}, {800, 100}},
		"long H100": {{2000, 25}, {800, 50}}, "long L40S": {{6000, 60}, {3000, 100}},
	}
	for _, use := range []string{"chat", "code", "long"} {
		for _, accelerator := range []string{"H100", "L40S"} {
			for set, limit := range limits[use+" "+accelerator] {
				for _, variation := range []float64{1, 4} {
					for _, n := range []int{1, 2, 4, 8, 16} {
						level := 0.95
						if set == 0 && accelerator == "H100" && variation == 1 {
							level = 0.99
						}
						all = append(all, &poolCell{
							use: use, accelerators: []string{accelerator}, replicas: []int{n}, ttft: limit[0], itl: limit[1],
							level: level, variation: variation,
						})
					}
				}
			}
		}
	}
	for _, kv := range []int{30_000, 60_000} {
		for _, variation := range []float64{1, 4} {
			for _, n := range []int{1, 2, 4, 8, 16} {
				all = append(all, &poolCell{
					use: "chat", accelerators: []string{"H100"}, replicas: []int{n}, ttft: 1000, itl: 25,
					level: 0.95, variation: variation, kv: kv,
				})
			}
		}
	}
	for _, m := range []poolCell{
		{use: "chat", accelerators: []string{"A100", "H100"}, ttft: 1000, itl: 40},
		{use: "chat", accelerators: []string{"A100", "H100"}, ttft: 700, itl: 80},
		{use: "code", accelerators: []string{"A100", "H100"}, ttft: 1500, itl: 80},
		{use: "long", accelerators: []string{"A100", "H100"}, ttft: 4000, itl: 40},
		{use: "chat", accelerators: []string{"H100", "L40S"}, ttft: 1000, itl: 60},
		{use: "code", accelerators: []string{"H100", "L40S"}, ttft: 1500, itl: 100},
	} {
		for _, replicas := range [][]int{{1, 1}, {2, 2}, {4, 4}, {1, 3}, {3, 1}} {
			next := m
			next.replicas, next.level, next.variation = replicas, 0.95, 1
			if replicas[0] == 2 {
				next.variation = 4
			}
			all = append(all, &next)
		}
	}
	for _, m := range []poolCell{
		{use: "chat", ttft: 300, itl: 50}, {use: "code", ttft: 300, itl: 50}, {use: "long", ttft: 800, itl: 50},
	} {
		for _, variation := range []float64{1, 4} {
			for _, n := range []int{4, 16} {
				next := m
				next.accelerators, next.replicas, next.level, next.variation = []string{"H100"}, []int{n}, 0.95, variation
				next.routing = simulation.RoundRobin
				all = append(all, &next)
			}
		}
	}
	return all
}
