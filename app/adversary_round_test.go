package app

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
)

// The victim has two models: one that serves, and one that is scaled to zero and gets no request.
const (
	victimModel = "meta-llama/Llama-3.1-8B-Instruct"
	idleModel   = "org/notes"
)

const (
	opening     = -1 // the cycle of the moves before the warm-up
	warmUp      = 40 // scrapes before the first cycle
	roundCycles = 40
	mostMoves   = 24
)

// round is one round: a cluster with a well-behaved and a hostile tenant, and a second server that
// sees the well-behaved one alone.
type round struct {
	seed     uint64
	arena    *arena
	now      time.Time
	gateways []*gateway
	named    int // objects of the hostile tenant so far
	peak     float64
	wave     float64 // share of the peak by which the load goes up and down
	phase    float64

	both, alone *side
	directory   string
	script      []played
	cycle       int
	seen        tally
}

// tally counts the cycles of rounds in which the hostile tenant mattered.
type tally struct {
	cycles    int
	rivals    int // the hostile tenant had requests for the victim's accelerators
	contended int // the victim's equal part was below its demand
	yielded   int // the victim had fewer replicas than it would have alone
}

func (t *tally) add(other tally) {
	t.cycles += other.cycles
	t.rivals += other.rivals
	t.contended += other.contended
	t.yielded += other.yielded
}

// played is a move at a cycle.
type played struct {
	cycle int
	move  move
	seed  uint64
}

// newRound returns the round of a seed. Moves that the filter rejects are left out.
func newRound(seed uint64, directory string, keep func(i int) bool) (*round, error) {
	random := rand.New(rand.NewPCG(seed, 1))
	r := &round{seed: seed, arena: &arena{now: arenaEpoch}, now: arenaEpoch, directory: directory}
	r.build(random)
	for i := range 1 + random.IntN(mostMoves) {
		from, at := moves(), random.IntN(roundCycles)
		if i < 4 {
			from, at = openings(), opening
		}
		p := played{at, from[random.IntN(len(from))], random.Uint64()}
		if keep(i) {
			r.script = append(r.script, p)
		}
	}
	slices.SortStableFunc(r.script, func(a, b played) int { return a.cycle - b.cycle })
	var err error
	if r.both, err = newSide(filepath.Join(directory, "both")); err != nil {
		return nil, err
	}
	r.alone, err = newSide(filepath.Join(directory, "alone"))
	return r, err
}

// build makes the nodes and the well-behaved tenant.
func (r *round) build(random *rand.Rand) {
	size := pick(random, 2, 4, 8)
	for i := range 1 + random.IntN(3) {
		r.arena.nodes = append(r.arena.nodes, arenaNode{fmt.Sprintf("h100-%d", i), productH100, size})
	}
	r.arena.nodes = append(r.arena.nodes, arenaNode{"l40s-0", productL40S, 4})
	total := 0
	for _, node := range r.arena.nodes {
		if node.product == productH100 {
			total += node.gpus
		}
	}
	gpus := pick(random, 1, 1, 1, 2)
	needed := 1 + random.IntN(total/gpus)
	if random.IntN(2) == 0 { // it needs them all
		needed = total / gpus
	}
	r.peak, r.wave, r.phase = arenaCapacity*0.8*float64(needed), pick(random, 0, 0, 0.2, 0.5), 7*random.Float64()
	chat := &workload{
		namespace: victimTenant, name: "chat-h100", replicas: pick(random, 1, (needed+1)/2, needed), gpus: gpus, product: productH100, grace: 30 * time.Second, startup: time.Minute, quota: 100,
		load: engineLoad{model: victimModel},
	}
	notes := &workload{namespace: victimTenant, name: "notes-l40s", gpus: 1, product: productL40S, startup: time.Minute, quota: 100, load: engineLoad{model: idleModel}}
	r.arena.workloads = []*workload{chat, notes}
	created := arenaEpoch.Add(-24 * time.Hour)
	r.arena.objects = []*scaled{
		{namespace: victimTenant, name: "chat-h100", target: "chat-h100", created: created, min: "0", max: "100", metadata: map[string]string{
			"scalerAddress": "wva:9090", "modelID": victimModel, "accelerator": "H100", "variantCost": "10",
		}},
		{namespace: victimTenant, name: "notes-l40s", target: "notes-l40s", created: created, min: "0", max: "8", metadata: map[string]string{
			"scalerAddress": "wva:9090", "modelID": idleModel, "accelerator": "L40S", "variantCost": "3",
		}},
	}
	r.gateways = []*gateway{{namespace: victimTenant, name: "gateway-0", models: []string{victimModel}}, {namespace: victimTenant, name: "gateway-1", models: []string{idleModel}}}
}

// rate is the requests per second of the victim's model.
func (r *round) rate() float64 {
	return r.peak * (1 - r.wave/2 + r.wave/2*math.Sin(r.phase+2*math.Pi*r.now.Sub(arenaEpoch).Hours()*3))
}

// observe lets Prometheus scrape all pods.
func (r *round) observe() error {
	all, alone := []*promstore.Store{r.both.store, r.alone.store}, []*promstore.Store{r.both.store}
	serving := 0.0
	if w := r.arena.workload(victimTenant, "chat-h100"); w != nil {
		for _, p := range w.pods {
			if p.isReady(r.now) && !p.terminating() {
				serving++
			}
		}
		rate := r.rate()
		w.load.rate = min(arenaCapacity, rate/max(1, serving))
		if over := rate - arenaCapacity*serving; over > 0 && serving > 0 {
			w.load.waiting = min(w.load.waiting+over*arenaStep.Seconds()/serving, 60*rate/serving)
		} else {
			w.load.waiting = max(0, w.load.waiting+over*arenaStep.Seconds()/max(1, serving))
		}
		r.gateways[0].rate = rate
	}
	for _, w := range r.arena.workloads {
		for _, p := range w.pods {
			var series []promstore.Sample
			if !w.load.unwatched && p.isReady(r.now) && !p.terminating() {
				series = vllmSeries(p, w.load)
			}
			stores := alone
			if p.namespace == victimTenant {
				stores = all
			}
			if err := scrape(stores, p.namespace+"/"+p.name, r.now, series); err != nil {
				return err
			}
		}
	}
	for _, g := range r.gateways {
		var series []promstore.Sample
		if !g.gone {
			series = g.series()
		}
		stores := alone
		if g.namespace == victimTenant {
			stores = all
		}
		if err := scrape(stores, g.namespace+"/"+g.name, r.now, series); err != nil {
			return err
		}
	}
	return nil
}

// play plays the round to its end, and returns the first check that fails.
func (r *round) play(ctx context.Context) error {
	r.cycle = opening
	r.act()
	for p := range r.arena.allPods() { // they have run for an hour
		if p.node != "" {
			p.created, p.ready = arenaEpoch.Add(-time.Hour), arenaEpoch.Add(-58*time.Minute)
		}
	}
	for range warmUp {
		if err := r.observe(); err != nil {
			return err
		}
		r.step()
	}
	for r.cycle = range roundCycles {
		r.act()
		if err := r.observe(); err != nil {
			return err
		}
		if err := r.decide(ctx); err != nil {
			return fmt.Errorf("cycle %d: %w", r.cycle, err)
		}
		r.step()
	}
	return nil
}

// act lets the hostile tenant move, and then the controllers.
func (r *round) act() {
	for _, p := range r.script {
		if p.cycle == r.cycle {
			p.move.do(r, rand.New(rand.NewPCG(p.seed, 2)))
		}
	}
	r.arena.tick()
}

func (r *round) step() {
	r.now = r.now.Add(arenaStep)
	r.arena.now = r.now
}

// decide runs one cycle of both servers, checks it, and carries out the plan.
func (r *round) decide(ctx context.Context) error {
	files := map[string]string{"nodes": r.arena.manifests(""), victimTenant: r.arena.manifests(victimTenant)}
	if err := r.alone.see(files); err != nil {
		return err
	}
	files[hostileTenant] = r.arena.manifests(hostileTenant)
	if err := r.both.see(files); err != nil {
		return err
	}
	at := r.now.Add(r.both.server.settings.Load().config.Prometheus.QueryOffset)
	before, _ := r.both.server.board.Plan()
	if err := r.both.server.loop.Once(ctx, at); err != nil {
		return err
	}
	plan, posted := r.both.server.board.Plan()
	snapshot, decided := r.both.server.loop.Snapshot()
	if !posted || !decided {
		return fmt.Errorf("no plan was posted")
	}
	var previous []fleet.PreviousDecision
	for _, row := range before.Previous() {
		if row.Variant.Namespace == victimTenant {
			previous = append(previous, row)
		}
	}
	control, err := r.controlSnapshot(ctx, at, previous)
	if err != nil {
		return err
	}
	if err := check(outcomeOf{r: r, snapshot: snapshot, plan: plan, control: control, policy: r.both.server.settings.Load().policy}); err != nil {
		return err
	}
	r.arena.obey(plan)
	return nil
}

// controlSnapshot is that of the server that sees the victim alone, with the windows of the other.
func (r *round) controlSnapshot(ctx context.Context, at time.Time, previous []fleet.PreviousDecision) (fleet.Snapshot, error) {
	control, err := r.alone.server.observe(ctx, at, previous)
	if err != nil {
		return fleet.Snapshot{}, err
	}
	current := r.alone.server.settings.Load()
	both, own := windowsOf(current.config, *r.both.tables.Load()), windowsOf(current.config, *r.alone.tables.Load())
	if both.ScaleDown != own.ScaleDown || both.ShortScaleDown != own.ShortScaleDown || both.Idle != own.Idle {
		both.Began = youngPods(current.config, control.Workloads, at)
		seen := current.collector.Collect(ctx, at, both)
		control.Usages, control.Loads = seen.Usages, seen.Loads
	}
	return control, nil
}

func (r *round) close() error {
	if err := r.both.close(); err != nil {
		return err
	}
	return r.alone.close()
}

// describe returns all that the hostile tenant did and has.
func (r *round) describe() string {
	var b strings.Builder
	for _, p := range r.script {
		fmt.Fprintf(&b, "cycle %2d: the hostile tenant %s\n", p.cycle, p.move.name)
	}
	fmt.Fprintf(&b, "\nnodes:\n%s\nobjects of the hostile tenant:\n%s\nobjects of the victim:\n%s", r.arena.manifests(""), r.arena.manifests(hostileTenant), r.arena.manifests(victimTenant))
	b.WriteString("\nseries of the hostile tenant:\n")
	for _, w := range r.arena.workloads {
		if w.namespace == hostileTenant && len(w.pods) > 0 && w.load.forged != nil {
			b.WriteString(expositionOf(vllmSeries(w.pods[0], w.load)))
		}
	}
	for _, g := range r.gateways {
		if g.namespace == hostileTenant && !g.gone {
			b.WriteString(expositionOf(g.series()))
		}
	}
	return b.String()
}
