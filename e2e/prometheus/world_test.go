package prometheus

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

const (
	// patience is the limit for things that must happen at once.
	patience = 10 * time.Second
	// deadline is the limit for things that take windows, start-ups and decisions.
	deadline = 90 * time.Second
)

// The variants, each of a model of its own: the load of chat changes, that of notes does not.
var (
	chat  = fleet.VariantID{Namespace: "llm", Name: "chat"}
	notes = fleet.VariantID{Namespace: "llm", Name: "notes"}
)

func modelOf(v fleet.VariantID) fleet.ModelID {
	return fleet.ModelID{Namespace: v.Namespace, Name: "org/" + v.Name}
}

// variants returns the hardware of both variants, sorted by name.
func variants() []simulation.VariantSpec {
	profile, _ := simulation.ProfileOf("Llama-3.1-8B", "L40S")
	specs := []simulation.VariantSpec{{ID: chat}, {ID: notes}}
	for i := range specs {
		s := &specs[i]
		s.Model, s.Profile, s.Cost, s.Initial = modelOf(s.ID), profile, 1.1, 1
		s.Target = fleet.TargetID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: s.ID.Namespace, Name: s.ID.Name}
		s.Startup, s.Grace = startup, 5
	}
	return specs
}

// world is a fleet that is scraped by a real Prometheus behind a proxy.
type world struct {
	*testing.T
	binary    string // of wva
	manifests *manifests
	engines   *engines
	scraper   *scraper
	proxy     *proxy
}

func newWorld(t *testing.T, binary string, d dialect) *world {
	t.Helper()
	w := &world{T: t, binary: binary, manifests: newManifests(t, d)}
	w.engines = startEngines(t, d, w.manifests.show)
	w.engines.ask(modelOf(chat), 1)
	w.engines.ask(modelOf(notes), 1)
	w.scraper = startScraper(t, w.engines)
	w.proxy = newProxy(t, w.scraper)
	return w
}

// build builds cmd/wva.
func build(t *testing.T) string {
	t.Helper()
	built := filepath.Join(t.TempDir(), "wva")
	command := exec.Command("go", "build", "-o", built, "./cmd/wva")
	command.Dir = filepath.Join("..", "..")
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	return built
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, deadline, tick, what)
}
