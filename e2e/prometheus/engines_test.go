package prometheus

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

const (
	// tick is the interval at which the fleet catches up with the wall clock.
	tick = 100 * time.Millisecond
	// startup is the time that a replica takes to load, in seconds.
	startup = 3
	// Lengths of every request, tokens.
	prompt, output = 1000, 150
)

// engines is a simulated fleet that runs in wall time and is scraped over HTTP.
type engines struct {
	*httptest.Server
	dialect dialect
	epoch   time.Time
	// is called with the state that the API server would show, from one goroutine
	changed func([]fleet.Workload)

	mu    sync.Mutex
	fleet *simulation.Fleet
	loads []load // sorted by model
}

// load is the request rate of a model.
type load struct {
	model     fleet.ModelID
	perSecond float64
	due       float64 // the part of a request that is due already
}

// startEngines runs a fleet until the test ends.
func startEngines(t *testing.T, d dialect, changed func([]fleet.Workload)) *engines {
	t.Helper()
	e := &engines{dialect: d, epoch: time.Now(), changed: changed}
	variants := variants()
	var err error
	e.fleet, err = simulation.NewFleet(simulation.FleetSpec{Seed: 1, Epoch: e.epoch, Variants: variants})
	require.NoError(t, err)
	for _, v := range variants {
		e.loads = append(e.loads, load{model: v.Model})
	}
	e.changed(e.fleet.Workloads())
	e.Server = httptest.NewServer(e.handler())
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		e.run(stop)
	}()
	t.Cleanup(func() {
		close(stop)
		<-ended
		e.Close()
	})
	return e
}

func (e *engines) run(stop <-chan struct{}) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			e.changed(e.workloads())
		case <-stop:
			return
		}
	}
}

// workloads returns the state that the API server would show now.
func (e *engines) workloads() []fleet.Workload {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.catchUp()
	return e.fleet.Workloads()
}

// ask sets the requests per second of a model from now on.
func (e *engines) ask(model fleet.ModelID, perSecond float64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.catchUp()
	for i := range e.loads {
		if e.loads[i].model == model {
			e.loads[i].perSecond = perSecond
		}
	}
}

// scale asks for a number of replicas, as a write to the scale subresource does.
func (e *engines) scale(variant fleet.VariantID, replicas int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.catchUp()
	return e.fleet.Scale(variant, replicas)
}

// replicas returns the number of replicas in the spec.
func (e *engines) replicas(variant fleet.VariantID) int {
	for _, w := range e.workloads() {
		if w.ID.Name == variant.Name && w.ID.Namespace == variant.Namespace {
			return w.Replicas
		}
	}
	return 0
}

// catchUp brings the fleet to the present, with the requests that have arrived since, at even
// distances. The mutex is locked.
func (e *engines) catchUp() {
	from, to := e.fleet.Now(), time.Since(e.epoch).Seconds()
	var requests []simulation.Request
	for i := range e.loads {
		l := &e.loads[i]
		due := l.due + l.perSecond*(to-from)
		count := int(due)
		l.due = due - float64(count)
		var own []simulation.Request
		for n := range count {
			at := from + (to-from)*float64(n+1)/float64(count+1)
			own = append(own, simulation.Request{Arrival: at, Model: l.model, Prompt: prompt, Output: output})
		}
		requests = simulation.Merge(requests, own)
	}
	if err := e.fleet.Offer(requests); err != nil {
		panic(err) // they are sorted, and none is in the past
	}
	e.fleet.Advance(to)
}

// series returns the current series of every endpoint.
func (e *engines) series() []simulation.Target {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.catchUp()
	return e.fleet.Series()
}

// handler serves the metrics of each pod, and the list of pods for Prometheus' discovery.
func (e *engines) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pods/{namespace}/{pod}", func(w http.ResponseWriter, r *http.Request) {
		targets := e.series()
		at := slices.IndexFunc(targets, func(t simulation.Target) bool {
			return t.Name == r.PathValue("namespace")+"/"+r.PathValue("pod")
		})
		if at < 0 {
			http.NotFound(w, r)
			return
		}
		target := targets[at]
		target.Samples = e.dialect.series(target.Samples)
		var page bytes.Buffer
		_ = writeText(&page, target) // into a buffer
		contentType, body := e.dialect.answer(page.String(), r.Header.Get("Accept"))
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body) // a scraper that went away
	})
	mux.HandleFunc("GET /targets", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(e.discovered(r.Host)) // a scraper that went away
	})
	return mux
}

// group is a group of targets of Prometheus' HTTP discovery.
type group struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

func (e *engines) discovered(host string) []group {
	groups := []group{}
	for _, target := range e.series() {
		groups = append(groups, group{Targets: []string{host}, Labels: map[string]string{
			"__metrics_path__": "/pods/" + target.Name, "namespace": target.Namespace, "pod": target.Pod,
		}})
	}
	return groups
}

// address returns the host and port of a URL.
func address(url string) string {
	_, after, _ := strings.Cut(url, "://")
	return after
}
