package solver

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/machines.golden, and with -compare docs/math/solver-comparison.md")

// machineCase is a problem whose solution is the same on every machine.
type machineCase struct {
	name    string
	problem Problem
}

func machineCases() []machineCase {
	var cases []machineCase
	add := func(p Problem, format string, arguments ...any) {
		cases = append(cases, machineCase{fmt.Sprintf(format, arguments...), p})
	}
	for seed := range uint64(4) {
		add(scarceFleet(300, seed, false), "ample/300/%d", seed)
	}
	for _, models := range []int{10, 30, 100, 300} {
		for seed := range uint64(3) {
			add(scarceFleet(models, seed, true), "scarce/%d/%d", models, seed)
		}
	}
	p := scarceFleet(100, 5, true)
	p.Steps = 20000
	add(p, "scarce/100/few-steps")
	for i := range p.Demands {
		p.Demands[i].Penalty, p.Demands[i].Priority = nil, i%3
	}
	add(p, "scarce/100/no-penalty")
	random := rand.New(rand.NewPCG(23, 1))
	for i := range 14 {
		add(mixedProblem(random, 2+i, i%2 == 0), "mixed/%d", i)
	}
	return cases
}

// fingerprint covers every count and every bit of cost and bound.
func fingerprint(p Problem) uint64 {
	s, hash := Solve(p), fnv.New64a()
	order := make([]int, len(p.Options))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return p.Options[a].Variant.Compare(p.Options[b].Variant) })
	for _, i := range order {
		fmt.Fprint(hash, s.Counts[i], ",")
	}
	fmt.Fprint(hash, math.Float64bits(s.Cost), math.Float64bits(s.Bound))
	return hash.Sum64()
}

func TestPlansAreTheSameOnEveryMachine(t *testing.T) {
	const golden = "testdata/machines.golden"
	var b strings.Builder
	for _, c := range machineCases() {
		fmt.Fprintf(&b, "%s %016x\n", c.name, fingerprint(c.problem))
	}
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(want), "\n")
	for i, got := range strings.Split(b.String(), "\n") {
		if i >= len(lines) || got != lines[i] {
			t.Errorf("%q differs from %s; a change of the solver that changes plans or bounds needs -update", got, golden)
		}
	}
}
