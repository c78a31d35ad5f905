package app

import (
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/spf13/pflag"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/inventory/manifests"
)

// side is a server with its Prometheus and its manifests.
type side struct {
	store  *promstore.Store
	server *Server
	tables atomic.Pointer[inventory.Tables]
	path   string
}

func newSide(path string) (*side, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	store, err := promstore.New()
	if err != nil {
		return nil, err
	}
	flags := pflag.NewFlagSet("wva", pflag.ContinueOnError)
	config.AddFlags(flags)
	if err := flags.Parse([]string{
		"--prometheus-url", "http://prometheus.invalid", "--manifests", path, "--service-classes", "[{name: premium, priority: 10, namespaces: [payments]}, {name: batch, priority: -1}]",
	}); err != nil {
		return nil, err
	}
	c, err := config.Load(flags)
	if err != nil {
		return nil, err
	}
	s := &side{store: store, path: path}
	s.tables.Store(&inventory.Tables{})
	s.server, err = New(Options{
		Config: c, Source: &Source{Tables: func() inventory.Tables { return *s.tables.Load() }}, Transport: store.Transport(),
		Clock: clocktesting.NewFakeClock(arenaEpoch), Seed: 1,
	})
	return s, err
}

func (s *side) close() error {
	s.server.settings.Load().close()
	return s.store.Close()
}

// see writes the manifests of the tenants, and reads them as the server does.
func (s *side) see(files map[string]string) error {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.path, name+".yaml"), []byte(text), 0o600); err != nil {
			return err
		}
	}
	directory, err := manifests.Open(manifests.Options{Path: s.path})
	if err != nil {
		return err
	}
	tables := directory.Tables()
	s.tables.Store(&tables)
	return nil
}
