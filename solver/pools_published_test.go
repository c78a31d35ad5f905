package solver

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// publishedFleet is the content of the file: 15 servers × 6 accelerators in limited number. A
// candidate is a number of replicas that serves the whole load of a server, and its cost.
type publishedFleet struct {
	Accelerators []struct {
		Name, Type   string
		Multiplicity int
	}
	Capacity []struct {
		Type  string
		Count int
	}
	Models []struct {
		Name, Acc string
		AccCount  int
	}
	Servers    []struct{ Name, Model string }
	Candidates map[string]map[string]struct {
		NumReplicas int
		Cost        float64
	} `json:"wva_v05_candidates"`
	Totals struct {
		Greedy    float64 `json:"greedy_published"`
		OneType   float64 `json:"exact_optimum_one_type_per_server"`
		Unlimited float64 `json:"unlimited_capacity_lower_bound"`
	}
}

func readPublishedFleet(t *testing.T) publishedFleet {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "shared", "data", "solver_small.json"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the published fleet is not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Sets struct{ Small publishedFleet }
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return file.Sets.Small
}

// gpus returns the type and number of accelerators of a replica of a model.
func (f publishedFleet) gpus(model, accelerator string) (fleet.Accelerator, int) {
	for _, a := range f.Accelerators {
		for _, m := range f.Models {
			if a.Name == accelerator && m.Acc == accelerator && m.Name == model {
				return fleet.Accelerator(a.Type), a.Multiplicity * m.AccCount
			}
		}
	}
	return "", 0
}

// problem has an option for each candidate: all of its replicas together, or one of them.
func (f publishedFleet) problem(t *testing.T, together bool) Problem {
	t.Helper()
	p := Problem{Tolerance: -1}
	for _, c := range f.Capacity {
		p.Pools = append(p.Pools, Pool{Accelerator: fleet.Accelerator(c.Type), Elastic: true, Limit: c.Count})
	}
	for _, server := range f.Servers {
		id := fleet.ModelID{Name: server.Name}
		p.Demands = append(p.Demands, Demand{Model: id, Amount: 1})
		for accelerator, c := range f.Candidates[server.Name] {
			kind, gpus := f.gpus(server.Model, accelerator)
			if gpus == 0 || !strings.HasSuffix(server.Name, server.Model) {
				t.Fatalf("%s uses no accelerator of %s", server.Name, accelerator)
			}
			n := float64(c.NumReplicas)
			o := within(taking(option(server.Name+"/"+accelerator, 1/n, c.Cost/n, 0), kind, gpus), 0, maxReplicas)
			if together {
				o = within(taking(option(server.Name+"/"+accelerator, 1, c.Cost, 0), kind, gpus*c.NumReplicas), 0, 1)
			}
			o.Model = id
			p.Options = append(p.Options, o)
		}
	}
	return p
}

func TestThePublishedFleetWithOneAcceleratorPerServer(t *testing.T) {
	f := readPublishedFleet(t)
	p := f.problem(t, true)
	s := Solve(p)
	checkPlan(t, newPoolsTwin(p), s)
	if !s.Proven || len(s.Shorts) > 0 || s.Cost != f.Totals.OneType || f.Totals.OneType != 35767 {
		t.Errorf("cost %v (bound %v, proven %v, shorts %+v), want %v", s.Cost, s.Bound, s.Proven, s.Shorts, f.Totals.OneType)
	}
}

func TestThePublishedFleetWithMixesIsNoDearer(t *testing.T) {
	const optimum = 35615 // by cbc
	f := readPublishedFleet(t)
	p := f.problem(t, false)
	s := Solve(p)
	checkPlan(t, newPoolsTwin(p), s)
	t.Logf("cost %v, bound %v, proven %v", s.Cost, s.Bound, s.Proven)
	if len(s.Shorts) > 0 || s.Cost > f.Totals.OneType || s.Cost >= f.Totals.Greedy {
		t.Errorf("cost %v (shorts %+v), want at most %v", s.Cost, s.Shorts, f.Totals.OneType)
	}
	if s.Cost < optimum-1e-6 || s.Bound > optimum+1e-6 {
		t.Errorf("cost %v and bound %v are not around the optimum, %v", s.Cost, s.Bound, optimum)
	}
}
