package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/demo/standin"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/simulation"
)

// Run runs the product on a simulated fleet until every request has ended, and returns the summary
// that it wrote. If the context ends before, the run ends after the virtual second in progress: the
// summary and the report are those of the part until then, and the error has the context's cause.
func Run(ctx context.Context, o Options) (Summary, error) {
	if err := o.setDefaults(); err != nil {
		return Summary{}, err
	}
	requests, err := o.load()
	if err != nil {
		return Summary{}, err
	}
	if err := o.checkFaults(o.lastSecond(requests)); err != nil {
		return Summary{}, err
	}
	s, err := newScenario(o)
	if err != nil {
		return Summary{}, err
	}
	r, err := newRun(o, s, requests)
	if err != nil {
		return Summary{}, err
	}
	if err := errors.Join(r.play(ctx), r.close()); err != nil {
		return Summary{}, err
	}
	return r.finish(ctx, requests)
}

// finish runs the baselines, and writes the summary and the report.
func (r *run) finish(ctx context.Context, requests []simulation.Request) (Summary, error) {
	r.report.announceBaselines(r)
	if r.interrupted { // the static fleet is sized for the part that was played
		requests = slices.DeleteFunc(slices.Clone(requests), func(q simulation.Request) bool { return q.Arrival > float64(r.end) })
	}
	summary, err := r.summarize(requests)
	if err != nil {
		return Summary{}, err
	}
	if err := r.report.summary(summary); err != nil {
		return summary, err
	}
	if r.options.Report != nil {
		if err := r.writePage(summary, requests); err != nil {
			return summary, fmt.Errorf("writing the report: %w", err)
		}
	}
	if r.interrupted {
		return summary, fmt.Errorf("ended at %s of the run: %w", clockText(r.end), context.Cause(ctx))
	}
	return summary, nil
}

// run is the state of a demo.
type run struct {
	options  Options
	scenario *scenario
	fleet    *simulation.Fleet
	recorder simulation.Recorder
	end      int // the second at which the run ended
	// interrupted is whether the context ended the run before its end.
	interrupted bool
	timeline    *timeline // nil without a report
	baselines   []*timeline
	store       *promstore.Store
	down        bool // whether Prometheus is down
	clock       *clocktesting.FakeClock
	product     *product // nil while the scaler is down
	pools       poolRecorder
	standIn     *standIn
	report      *report
	last        int // the first second at which the run may end
	scraper     *standin.Scraper
	deadline    int
}

// maxDrain is how long the run continues after the last arrival for requests that may never end, in
// seconds.
const maxDrain = 1800

func newRun(o Options, s *scenario, requests []simulation.Request) (*run, error) {
	simulated, err := simulation.NewFleet(s.fleet)
	if err != nil {
		return nil, err
	}
	if err := simulated.Offer(requests); err != nil {
		return nil, err
	}
	store, err := promstore.New()
	if err != nil {
		return nil, err
	}
	r := &run{
		options: o, scenario: s, fleet: simulated, store: store, clock: clocktesting.NewFakeClock(epoch),
		report: newReport(o, s), scraper: standin.NewScraper(store), last: o.lastSecond(requests),
	}
	r.deadline = r.last + maxDrain
	if o.Report != nil {
		r.timeline = newTimeline(s)
	}
	if r.standIn, err = newStandIn(s.objects, r.scale, r.replicas); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return r, nil
}

// play advances virtual time, second by second, until every request has ended or the caller's
// context ends. A second is played to its end in any case.
func (r *run) play(caller context.Context) error {
	ctx := context.WithoutCancel(caller)
	if err := r.startProduct(ctx); err != nil {
		return err
	}
	r.report.begin(r.product.address, r.product.operators)
	for second := 0; ; second++ {
		if err := r.second(ctx, second); err != nil {
			return err
		}
		r.end = second
		if second >= r.last && (r.open() == 0 || second >= r.deadline) {
			return nil
		}
		if err := r.report.throttle(caller, second); err != nil {
			r.interrupted = caller.Err() != nil && r.report.err == nil
			if r.interrupted {
				return nil
			}
			return err
		}
	}
}

// open returns the number of requests that have arrived and not ended.
func (r *run) open() (open int) {
	for _, t := range r.fleet.Tallies() {
		open += t.Queued + t.InFlight
	}
	return open
}

// second is one second of virtual time: the fleet advances, Prometheus scrapes, the scaler decides,
// KEDA and the HPA act, one after the other.
func (r *run) second(ctx context.Context, second int) error {
	now := epoch.Add(time.Duration(second) * time.Second)
	r.clock.SetTime(now)
	r.fleet.Advance(float64(second))
	r.recorder.Observe(r.fleet)
	r.pools.observe(second, r.fleet.Pools())
	r.timeline.observe(r.fleet)
	r.down = active(r.options.Faults, FaultPrometheus, second)
	if !r.down {
		if err := r.scraper.Scrape(r.fleet, second, active(r.options.Faults, FaultScrape, second)); err != nil {
			return err
		}
	}
	if err := r.injectScalerFault(ctx, second); err != nil {
		return err
	}
	if r.product != nil {
		decided, err := r.product.turn(ctx, now)
		if err != nil {
			return err
		}
		if err := r.awaitPushes(ctx); err != nil {
			return err
		}
		if decided {
			r.report.tick(second, r)
		}
		if plan, posted := r.product.board.Plan(); posted && r.pools.rows != nil {
			r.pools.recordPlan(plan)
		}
	}
	return r.standIn.tick(ctx, second)
}

// awaitPushes returns once every push that is due has arrived.
func (r *run) awaitPushes(ctx context.Context) error {
	if err := r.product.server.Settle(ctx); err != nil {
		return err
	}
	return r.standIn.await(ctx, r.product.server.Pushes())
}

// injectScalerFault kills and restarts the scaler as the faults demand.
func (r *run) injectScalerFault(ctx context.Context, second int) error {
	dead := active(r.options.Faults, FaultScaler, second)
	switch {
	case dead && r.product != nil:
		err := errors.Join(r.product.close(), r.standIn.disconnect())
		r.product = nil
		return err
	case !dead && r.product == nil:
		return r.startProduct(ctx)
	}
	return nil
}

func (r *run) startProduct(ctx context.Context) error {
	p, err := startProduct(ctx, productOptions{
		config: r.scenario.config, tables: r.tables, transport: r, clock: r.clock,
		logger: r.options.Logger, address: r.options.Address, operators: r.options.OperatorsAddress, seed: r.options.Seed,
	})
	if err != nil {
		return err
	}
	r.product = p
	// the next instance has the same ones
	r.options.Address, r.options.OperatorsAddress = p.address, p.operators
	return r.standIn.connect(ctx, p.address)
}

// tables returns the fleet as a watch of its cluster would.
func (r *run) tables() inventory.Tables {
	return inventory.Tables{Variants: r.scenario.variants, Workloads: r.fleet.Workloads(), Pools: r.fleet.Pools()}
}

// RoundTrip passes the collector's queries to the store. While Prometheus is down, they fail.
func (r *run) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.down {
		return nil, errors.New("connection refused (Prometheus is down because of a fault)")
	}
	return r.store.Transport().RoundTrip(request)
}

func (r *run) scale(id fleet.VariantID, replicas int) {
	if err := r.fleet.Scale(id, replicas); err != nil {
		r.options.Logger.Error("scaling failed", "variant", id.String(), "error", err)
	}
}

func (r *run) replicas(id fleet.VariantID) int {
	for _, s := range r.fleet.States() {
		if s.Variant == id {
			return s.Replicas
		}
	}
	return 0
}

// close ends the product and the stand-in, and closes the store.
func (r *run) close() error {
	var errs []error
	if r.product != nil {
		errs = append(errs, r.product.close())
	}
	return errors.Join(append(errs, r.standIn.disconnect(), r.store.Close())...)
}
