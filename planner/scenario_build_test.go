package planner

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
)

// scenarioFleet is the snapshot of a case while it is built.
type scenarioFleet struct {
	fleet.Snapshot
	models map[string]*scenarioModel
	sole   string // the model of rows that name none
}

// scenarioModel is the load of one model, in its namespace.
type scenarioModel struct {
	row             fleet.Model
	engine, gateway fleet.Load
	reported        bool // a ready replica reports
	atGateway       bool
	rate, inFlight  float64
	idle            time.Duration
}

// snapshot builds the snapshot of the case, and sets its policy.
func (c *scenarioCase) snapshot() (fleet.Snapshot, error) {
	f := &scenarioFleet{Snapshot: fleet.Snapshot{Time: epoch}, models: map[string]*scenarioModel{}}
	f.Accelerators = []fleet.AcceleratorSpec{{Name: "L40S", Speed: 1}, {Name: "H100", Speed: 4}}
	c.policy = Policy{}
	for _, fact := range c.facts {
		for _, phrase := range fact.phrases {
			if !f.tell(c, fact, phrase) {
				return fleet.Snapshot{}, lineError(fact.line, "%s: not known of a %s", phrase, fact.word)
			}
		}
	}
	if len(c.rows) == 0 {
		return fleet.Snapshot{}, lineError(c.line, "%w", errEmptyCase)
	}
	for _, row := range c.rows {
		for _, one := range row.expanded() {
			if err := f.addVariant(one); err != nil {
				return fleet.Snapshot{}, err
			}
		}
	}
	f.addLoads()
	return f.Snapshot, nil
}

// model returns a model by the name of a case: with its namespace before a slash, or in shop.
func (f *scenarioFleet) model(name string) *scenarioModel {
	m := f.models[name]
	if m != nil {
		return m
	}
	namespace, id, found := strings.Cut(name, "/")
	if !found {
		namespace, id = "shop", name
	}
	load := fleet.Load{
		Namespace: namespace, Model: id, Time: epoch, PeakCovered: true, IdleCovered: time.Hour,
		PromptTokens: fleet.Observed(1000), OutputTokens: fleet.Observed(200),
	}
	m = &scenarioModel{row: fleet.Model{ID: fleet.ModelID{Namespace: namespace, Name: id}}, engine: load, gateway: load}
	m.engine.Source, m.gateway.Source = fleet.SourceEngine, fleet.SourceGateway
	m.gateway.Arrivals, m.gateway.Queued = fleet.Observed(0), fleet.Observed(0)
	f.models[name] = m
	return m
}

// scenarioPhrase is a phrase of a fact; # in the pattern is a number or a duration, * a name.
type scenarioPhrase struct {
	word, pattern string
	apply         func(f *scenarioFleet, c *scenarioCase, name string, args []string)
}

func modelPhrase(pattern string, apply func(m *scenarioModel, args []string)) scenarioPhrase {
	return scenarioPhrase{"model", pattern, func(f *scenarioFleet, _ *scenarioCase, name string, args []string) { apply(f.model(name), args) }}
}

func scenarioPhrases() []scenarioPhrase {
	return []scenarioPhrase{
		modelPhrase("no gateway", func(*scenarioModel, []string) {}),
		modelPhrase("gateway silent", func(m *scenarioModel, _ []string) { m.atGateway = true }),
		modelPhrase("gateway silent for #", func(m *scenarioModel, a []string) { m.atGateway, m.gateway.IdleCovered = true, span(a[0]) }),
		modelPhrase("gateway # req/s", func(m *scenarioModel, a []string) {
			m.atGateway, m.gateway.Arrivals, m.gateway.PeakArrivals = true, reading(a[0]), reading(a[0])
			m.gateway.LastActive = epoch
		}),
		modelPhrase("gateway peak # req/s", func(m *scenarioModel, a []string) { m.atGateway, m.gateway.PeakArrivals = true, reading(a[0]) }),
		modelPhrase("# queued", func(m *scenarioModel, a []string) {
			m.atGateway, m.gateway.Queued, m.gateway.LastActive = true, reading(a[0]), epoch
		}),
		modelPhrase("peak # req/s", func(m *scenarioModel, a []string) { m.engine.PeakArrivals = reading(a[0]) }),
		modelPhrase("peak # ± # req/s", func(m *scenarioModel, a []string) {
			m.engine.PeakArrivals, m.engine.PeakError = reading(a[0]), reading(a[1])
		}),
		modelPhrase("recently # ± # req/s", func(m *scenarioModel, a []string) {
			m.engine.RecentArrivals, m.engine.RecentError = reading(a[0]), reading(a[1])
			m.gateway.RecentArrivals, m.gateway.RecentError = m.engine.RecentArrivals, m.engine.RecentError
		}),
		modelPhrase("idle for #", func(m *scenarioModel, a []string) { m.idle = span(a[0]) }),
		modelPhrase("samples for #", func(m *scenarioModel, a []string) { m.engine.IdleCovered = span(a[0]) }),
		modelPhrase("window not covered", func(m *scenarioModel, _ []string) { m.engine.PeakCovered = false }),
		modelPhrase("TTFT #", func(m *scenarioModel, a []string) { m.engine.TTFT = fleet.Observed(span(a[0]).Seconds()) }),
		modelPhrase("ITL #", func(m *scenarioModel, a []string) { m.engine.ITL = fleet.Observed(span(a[0]).Seconds()) }),
		modelPhrase("retention #", func(m *scenarioModel, a []string) { m.row.Retention = span(a[0]) }),
		modelPhrase("scale to zero off", func(m *scenarioModel, _ []string) { m.row.ScaleToZeroOff = true }),
		{"pool", "# nodes of #", func(f *scenarioFleet, _ *scenarioCase, name string, a []string) {
			pool := f.pool(name)
			for range whole(a[0]) {
				node := fmt.Sprintf("%s-%d", strings.ToLower(name), len(pool.Nodes))
				pool.Nodes = append(pool.Nodes, fleet.Node{Name: node, Allocatable: whole(a[1])})
			}
		}},
		{"pool", "# used by others", func(f *scenarioFleet, _ *scenarioCase, name string, a []string) {
			for range whole(a[0]) {
				f.place(fleet.Accelerator(name), 1, 0)
			}
		}},
		{"pool", "elastic", func(f *scenarioFleet, _ *scenarioCase, name string, _ []string) { f.pool(name).Elastic = true }},
		{"pool", "# nodes cordoned", func(f *scenarioFleet, _ *scenarioCase, name string, a []string) {
			pool := f.pool(name)
			for range whole(a[0]) {
				node := fmt.Sprintf("%s-%d", strings.ToLower(name), len(pool.Nodes))
				pool.Nodes = append(pool.Nodes, fleet.Node{Name: node, Closed: "cordoned"})
			}
		}},
		{"pool", "nodes # to # reject #", func(f *scenarioFleet, _ *scenarioCase, name string, a []string) {
			for i := whole(a[0]); i <= whole(a[1]); i++ {
				node := &f.pool(name).Nodes[i]
				node.Rejects = append(node.Rejects, fleet.Rejection{Placement: whole(a[2]), Why: "tainted"})
			}
		}},
		{"pool", "nodes # to # usable #", func(f *scenarioFleet, _ *scenarioCase, name string, a []string) {
			for i := whole(a[0]); i <= whole(a[1]); i++ {
				node := &f.pool(name).Nodes[i]
				node.Usable, node.UsableBy = whole(a[2]), "insufficient cpu"
			}
		}},
		{"pool", "adds #", func(f *scenarioFleet, _ *scenarioCase, name string, a []string) { f.pool(name).Adds = whole(a[0]) }},
		{"pool", "backs off", func(f *scenarioFleet, _ *scenarioCase, name string, _ []string) { f.pool(name).BacksOff = true }},
		{"pool", "limited by NodePool *", func(f *scenarioFleet, _ *scenarioCase, name string, a []string) {
			f.pool(name).LimitedBy = "NodePool " + a[0]
		}},
		{"pool", "at most #", func(f *scenarioFleet, _ *scenarioCase, name string, a []string) { f.pool(name).Limit = whole(a[0]) }},
		{"class", "priority #", func(f *scenarioFleet, _ *scenarioCase, name string, a []string) {
			f.Classes = append(f.Classes, fleet.ServiceClass{Name: name, Priority: whole(a[0])})
		}},
		{"class", "granted to *", func(f *scenarioFleet, _ *scenarioCase, _ string, a []string) {
			class := &f.Classes[len(f.Classes)-1]
			class.Namespaces = append(class.Namespaces, a[0])
		}},
		{"namespace", "at most # *", func(f *scenarioFleet, _ *scenarioCase, name string, a []string) {
			limit := fleet.Limit{Namespace: name, Accelerator: fleet.Accelerator(a[1]), Max: whole(a[0])}
			if a[1] == "accelerators" {
				limit.Accelerator = ""
			}
			f.Limits = append(f.Limits, limit)
		}},
		{"accelerator", "speed #", func(f *scenarioFleet, _ *scenarioCase, name string, a []string) {
			f.accelerator(name).Speed = number(a[0])
		}},
		{"accelerator", "price #", func(f *scenarioFleet, _ *scenarioCase, name string, a []string) {
			f.accelerator(name).Price = number(a[0])
		}},
		{"policy", "retention #", func(_ *scenarioFleet, c *scenarioCase, _ string, a []string) { c.policy.Retention = span(a[0]) }},
		{"policy", "min lifetime #", func(_ *scenarioFleet, c *scenarioCase, _ string, a []string) {
			c.policy.MinReplicaLifetime = span(a[0])
		}},
		{"quota", "# of # used", func(f *scenarioFleet, _ *scenarioCase, name string, a []string) {
			f.Quotas = append(f.Quotas, fleet.Quota{Name: "ResourceQuota " + name, Resource: "nvidia.com/gpu", Used: whole(a[0]), Hard: whole(a[1])})
		}},
		{"quota", "of flavor *", func(f *scenarioFleet, _ *scenarioCase, name string, a []string) {
			q := &f.Quotas[len(f.Quotas)-1]
			q.Name, q.Resource, q.Gates = "ClusterQueue "+name, q.Resource+" of flavor "+a[0], true
		}},
		{"missing", "hides gateway", func(f *scenarioFleet, _ *scenarioCase, name string, _ []string) { f.miss(name, fleet.SourceGateway) }},
		{"missing", "hides engine", func(f *scenarioFleet, _ *scenarioCase, name string, _ []string) { f.miss(name, fleet.SourceEngine) }},
	}
}

// tell applies one phrase of a fact; false if it is not known.
func (f *scenarioFleet) tell(c *scenarioCase, fact scenarioFact, phrase string) bool {
	if fact.word == "model" {
		f.sole = fact.name
	}
	for _, p := range scenarioPhrases() {
		pattern := strings.NewReplacer("#", `(-?[\d.]+(?:ms|s|m|h)?)`, "*", `(\S+)`).Replace(p.pattern)
		args := regexp.MustCompile("^" + pattern + "$").FindStringSubmatch(phrase)
		if p.word == fact.word && args != nil {
			p.apply(f, c, fact.name, args[1:])
			return true
		}
	}
	return false
}

func (f *scenarioFleet) miss(source string, hides fleet.LoadSource) {
	f.Missing = append(f.Missing, fleet.Missing{Source: "prometheus query " + source, Reason: "timeout", Hides: hides})
}

func (f *scenarioFleet) pool(name string) *fleet.Pool {
	for i := range f.Pools {
		if f.Pools[i].Accelerator == fleet.Accelerator(name) {
			return &f.Pools[i]
		}
	}
	f.Pools = append(f.Pools, fleet.Pool{Accelerator: fleet.Accelerator(name)})
	return &f.Pools[len(f.Pools)-1]
}

func (f *scenarioFleet) accelerator(name string) *fleet.AcceleratorSpec {
	for i := range f.Accelerators {
		if f.Accelerators[i].Name == fleet.Accelerator(name) {
			return &f.Accelerators[i]
		}
	}
	f.Accelerators = append(f.Accelerators, fleet.AcceleratorSpec{Name: fleet.Accelerator(name), Speed: 1})
	return &f.Accelerators[len(f.Accelerators)-1]
}

// place allocates accelerators on the first node of a pool that has them free and takes pods of the
// placement, and returns the node. Without nodes of the type the place is not known, and limits
// nothing.
func (f *scenarioFleet) place(accelerator fleet.Accelerator, gpus, placement int) (node string, found bool) {
	for i := range f.Pools {
		pool := &f.Pools[i]
		if pool.Accelerator != accelerator || pool.Elastic && len(pool.Nodes) == 0 {
			continue
		}
		for n := range pool.Nodes {
			rejects := slices.ContainsFunc(pool.Nodes[n].Rejects, func(r fleet.Rejection) bool { return r.Placement == placement })
			if !rejects && pool.Nodes[n].Allocatable-pool.Nodes[n].Allocated >= gpus {
				pool.Nodes[n].Allocated += gpus
				return pool.Nodes[n].Name, true
			}
		}
		return "", false
	}
	return "", true
}

// addLoads adds the loads of the models: of engines if a replica reports, of a gateway if the case
// tells of one.
func (f *scenarioFleet) addLoads() {
	for _, m := range f.models {
		f.Models = append(f.Models, m.row)
		if m.idle == 0 {
			m.engine.LastActive = epoch
		} else {
			m.engine.LastActive, m.gateway.LastActive = epoch.Add(-m.idle), epoch.Add(-m.idle)
		}
		if m.reported {
			m.engine.PeakArrivals = fleet.Observed(m.engine.PeakArrivals.Or(m.rate))
			m.engine.PeakInFlight = fleet.Observed(m.inFlight)
			f.Loads = append(f.Loads, m.engine)
		}
		if m.atGateway {
			f.Loads = append(f.Loads, m.gateway)
		}
	}
}

func number(text string) float64 {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return -1
	}
	return value
}

func whole(text string) int { return int(number(text)) }

func reading(text string) fleet.Reading { return fleet.Observed(number(text)) }

func span(text string) time.Duration {
	value, err := time.ParseDuration(text)
	if err != nil {
		return -1
	}
	return cmp.Or(value, time.Nanosecond)
}
