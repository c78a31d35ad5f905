package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// node adds a node to a pool. Others have allocated a part of its accelerators.
func (s *scenario) node(accelerator fleet.Accelerator, name string, gpus, others int) *scenario {
	i := slices.IndexFunc(s.Pools, func(p fleet.Pool) bool { return p.Accelerator == accelerator })
	if i < 0 {
		i = len(s.Pools)
		s.Pools = append(s.Pools, fleet.Pool{Accelerator: accelerator})
	}
	s.Pools[i].Nodes = append(s.Pools[i].Nodes, fleet.Node{Name: name, Allocatable: gpus, Allocated: others})
	return s
}

// on schedules the pods of a variant on nodes, one for each in their order; "" leaves one without.
func (s *scenario) on(name string, nodes ...string) *scenario {
	v := s.variant(name)
	w := &s.Workloads[slices.IndexFunc(s.Workloads, func(w fleet.Workload) bool { return w.ID == v.Target })]
	for i, node := range nodes {
		if node == "" {
			continue
		}
		w.Pods[i].Nodes = []string{node}
		for p := range s.Pools {
			for n := range s.Pools[p].Nodes {
				if s.Pools[p].Nodes[n].Name == node {
					s.Pools[p].Nodes[n].Allocated += v.GPUsPerReplica
				}
			}
		}
	}
	return s
}

func (s *scenario) variant(name string) *fleet.Variant {
	return &s.Variants[slices.IndexFunc(s.Variants, func(v fleet.Variant) bool { return v.ID.Name == name })]
}

// gpus sets the accelerators of each replica of a variant.
func gpus(n int) func(*fleet.Variant) { return func(v *fleet.Variant) { v.GPUsPerReplica = n } }

// beside adds the variants of another scenario, as those of another model.
func (s *scenario) beside(model string, other *scenario) *scenario {
	for _, v := range other.Variants {
		v.Model.Name = model
		s.Variants = append(s.Variants, v)
	}
	for _, u := range other.Usages {
		u.Model = model
		s.Usages = append(s.Usages, u)
	}
	for _, l := range other.Loads {
		l.Model = model
		s.Loads = append(s.Loads, l)
	}
	s.Workloads = append(s.Workloads, other.Workloads...)
	return s
}

// class gives a variant a service class.
func (s *scenario) class(variant, class string, priority int) *scenario {
	s.variant(variant).ServiceClass = class
	if !slices.ContainsFunc(s.Classes, func(c fleet.ServiceClass) bool { return c.Name == class }) {
		s.Classes = append(s.Classes, fleet.ServiceClass{Name: class, Priority: priority, Namespaces: []string{"*"}})
	}
	return s
}

// called renames the variants of a scenario.
func (s *scenario) called(prefix string) *scenario {
	for i := range s.Variants {
		s.Variants[i].ID.Name = prefix + s.Variants[i].ID.Name
		s.Variants[i].Target.Name = prefix + s.Variants[i].Target.Name
	}
	for i := range s.Workloads {
		s.Workloads[i].ID.Name = prefix + s.Workloads[i].ID.Name
		for j := range s.Workloads[i].Pods {
			s.Workloads[i].Pods[j].Name = prefix + s.Workloads[i].Pods[j].Name
		}
	}
	for i := range s.Usages {
		s.Usages[i].Pod = prefix + s.Usages[i].Pod
	}
	return s
}

// overallocated returns the part of a plan that does not fit onto the nodes; "" if all fits.
// Replicas without accelerators of held variants, and those that are kept because data are missing,
// are not counted, since the planner does not decide them.
func overallocated(s fleet.Snapshot, plan fleet.Plan) string {
	scaled, _ := splitDryRun(s)
	x := newView(scaled, nil, Policy{}.withDefaults())
	problem := solver.Problem{Pools: x.gpus.pools(), Holdings: x.gpus.holdings, Options: x.heldOptions(plan.Decisions)}
	numbers := counts{}
	owners := map[fleet.VariantID]*variant{}
	for v := range x.owners() {
		owners[v.ID] = v
	}
	for _, d := range plan.Decisions {
		v := owners[d.Variant]
		if v == nil {
			continue
		}
		numbers[d.Variant] = max(0, d.Replicas-v.overdue-v.stuck)
		if d.Held || strings.Contains(d.Reason.String(), "with accelerators for") {
			numbers[d.Variant] = v.factual(numbers[d.Variant])
		}
	}
	rows := make([]solver.Count, len(problem.Options))
	for i := range problem.Options {
		option := &problem.Options[i]
		rows[i] = solver.Count{Variant: option.Variant, Replicas: numbers[option.Variant]}
		option.Range = fleet.Range{Max: rows[i].Replicas}
	}
	if !solver.Fits(problem, rows) {
		return fmt.Sprintf("%+v of %+v", rows, problem.Pools)
	}
	return ""
}

// decideWithin is decide with a check that the plan fits onto the nodes.
func (s *scenario) decideWithin(t *testing.T) map[string]fleet.Decision {
	t.Helper()
	if over := overallocated(s.Snapshot, Plan(s.Snapshot, Policy{})); over != "" {
		t.Errorf("the plan does not fit: %s", over)
	}
	return s.decide(t)
}

// withoutNodes adds an accelerator type that has no node.
func (s *scenario) withoutNodes(accelerator fleet.Accelerator) *scenario {
	s.Pools = append(s.Pools, fleet.Pool{Accelerator: accelerator})
	return s
}
