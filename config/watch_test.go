package config_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
)

// mount is a directory as Kubernetes mounts a ConfigMap: the file is a link into ..data, which is a link that is swapped.
type mount struct {
	testing.TB
	directory string
	revision  int
}

func newMount(t testing.TB, text string) *mount {
	m := &mount{TB: t, directory: t.TempDir()}
	m.swap(text)
	require.NoError(t, os.Symlink(filepath.Join("..data", "wva.yaml"), m.path()))
	return m
}

func (m *mount) path() string { return filepath.Join(m.directory, "wva.yaml") }

func (m *mount) swap(text string) {
	m.Helper()
	m.revision++
	name := "..revision" + strings.Repeat("x", m.revision)
	require.NoError(m, os.Mkdir(filepath.Join(m.directory, name), 0o700))
	require.NoError(m, os.WriteFile(filepath.Join(m.directory, name, "wva.yaml"), []byte(text), 0o600))
	fresh := filepath.Join(m.directory, "..data_tmp")
	require.NoError(m, os.Symlink(name, fresh))
	require.NoError(m, os.Rename(fresh, filepath.Join(m.directory, "..data")))
}

// watched is what a watch told of. Between two calls of looks the test may read it.
type watched struct {
	mu      sync.Mutex
	configs []*config.Config
	changes []config.Change
	refused []error
	broken  error // what Apply returns
}

func (w *watched) last() *config.Config { return w.configs[len(w.configs)-1] }

// watching watches the file in virtual time while the story is told.
func watching(t *testing.T, path string, story func(t *testing.T, w *watched), arguments ...string) {
	t.Helper()
	flags := given(t, append(arguments, "--config", path)...)
	current, err := config.Load(flags)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		w := &watched{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- config.Watch(ctx, config.WatchOptions{
				Current: current, Every: time.Second,
				Apply: func(c *config.Config, change config.Change) error {
					w.mu.Lock()
					defer w.mu.Unlock()
					if w.broken != nil {
						return w.broken
					}
					w.configs, w.changes = append(w.configs, c), append(w.changes, change)
					return nil
				},
				Refused: func(err error) {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.refused = append(w.refused, err)
				},
			})
		}()
		synctest.Wait()
		story(t, w)
		cancel()
		require.NoError(t, <-ended)
	})
}

// looks lets the watch look at the file so often, by the clock of the bubble.
func (w *watched) looks(n int) {
	w.mu.Lock()   // what the test has read so far, it has read before
	w.mu.Unlock() //nolint:staticcheck // the section is empty on purpose
	time.Sleep(time.Duration(n) * time.Second)
	synctest.Wait()
}

func TestWatchTakesAMountedConfigMapThatIsSwapped(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	m := newMount(t, base)
	watching(t, m.path(), func(t *testing.T, w *watched) {
		w.looks(5)
		require.Empty(t, w.configs, "nothing changed")
		m.swap(base + "interval: 30s\nmodels: [{model: a/b, scaleToZero: true}]")
		w.looks(1)
		require.Empty(t, w.configs, "one look is not enough: the file may be half written")
		w.looks(5)
		require.Len(t, w.configs, 1, "a content is told of once")
		require.Equal(t, []string{"interval", "models"}, w.changes[0].Reloaded)
		require.Empty(t, w.changes[0].Pending)
		require.Equal(t, 30*time.Second, w.last().Interval)
		require.Equal(t, "a/b", w.last().Models[0].ID.String())
		m.swap(base)
		w.looks(2)
		require.Equal(t, 15*time.Second, w.last().Interval)
		require.Empty(t, w.refused)
	})
}

func TestWatchKeepsTheConfigurationWhereTheFileIsFaulty(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	m := newMount(t, base)
	watching(t, m.path(), func(t *testing.T, w *watched) {
		m.swap(base + "interval: soon\nmodells: []")
		w.looks(10)
		require.Empty(t, w.configs)
		require.Len(t, w.refused, 1, "a content is told of once")
		require.ErrorContains(t, w.refused[0], `"soon" is not a duration`)
		require.ErrorContains(t, w.refused[0], `unknown key "modells"`)
		m.swap(base + "interval: 30s")
		w.looks(2)
		require.Equal(t, 30*time.Second, w.last().Interval)
		require.Equal(t, []string{"interval"}, w.changes[0].Reloaded, "against what is in force")
	})
}

func TestWatchSurvivesAFileThatIsGone(t *testing.T) {
	text := needed + t.TempDir() + "\n"
	path := written(t, text)
	watching(t, path, func(t *testing.T, w *watched) {
		require.NoError(t, os.Remove(path))
		w.looks(5)
		require.Len(t, w.refused, 1)
		require.ErrorContains(t, w.refused[0], "cannot be read: no such file or directory")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		w.looks(5)
		require.Len(t, w.configs, 1, "its return is told of, even without a change")
		require.Empty(t, w.changes[0].Reloaded)
	})
}

func TestWatchSaysWhatNeedsARestart(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	path := written(t, base)
	watching(t, path, func(t *testing.T, w *watched) {
		require.NoError(t, os.WriteFile(path, []byte(base+"grpc: {address: ':7'}\nlog: {format: json}\npolicy: {holdFor: 7m}"), 0o600))
		w.looks(2)
		require.Equal(t, []string{"log.format", "grpc.address"}, w.changes[0].Pending)
		require.Equal(t, []string{"policy.holdFor"}, w.changes[0].Reloaded)
		require.Equal(t, ":9090", w.last().GRPC.Address, "what cannot be reloaded stays")
		require.Equal(t, config.SourceDefault, w.last().Origin("grpc.address").Source)
		require.Equal(t, 7*time.Minute, w.last().Policy.HoldFor)
	})
}

func TestWatchReloadsTheIntervalWithWhatFollowsIt(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	path := written(t, base)
	watching(t, path, func(t *testing.T, w *watched) {
		require.NoError(t, os.WriteFile(path, []byte(base+"interval: 30m"), 0o600))
		w.looks(2)
		require.Empty(t, w.refused)
		require.Equal(t, 2*time.Hour, w.last().MaxPlanAge)
		require.Equal(t, []string{"interval", "maxPlanAge"}, w.changes[0].Reloaded)
		require.Empty(t, w.changes[0].Pending)
	})
}

func TestWatchTriesARefusedFileAgainUntilItIsTaken(t *testing.T) {
	path := written(t, "interval: 20s\n")
	certificate := filepath.Join(t.TempDir(), "ca.pem")
	watching(t, path, func(t *testing.T, w *watched) {
		require.NoError(t, os.WriteFile(path, []byte("prometheus: {caFile: "+certificate+"}"), 0o600))
		w.looks(10)
		require.Len(t, w.refused, 1, "the same faults are told of once")
		require.NoError(t, os.WriteFile(certificate, []byte("x"), 0o600))
		w.looks(1)
		require.Len(t, w.configs, 1)
		require.Equal(t, certificate, w.last().Prometheus.CAFile)
		w.looks(5)
		require.Len(t, w.configs, 1)
	}, "--prometheus-url", "https://p", "--manifests", t.TempDir())
}

func TestWatchKeepsTheConfigurationWhereTheNewOneCannotBeApplied(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	path := written(t, base)
	watching(t, path, func(t *testing.T, w *watched) {
		w.broken = errors.New("no certificate in the file")
		require.NoError(t, os.WriteFile(path, []byte(base+"interval: 20s"), 0o600))
		w.looks(5)
		require.Equal(t, []error{w.broken}, w.refused)
		w.broken = nil
		w.looks(1)
		require.Equal(t, []string{"interval"}, w.changes[0].Reloaded)
	})
}

func TestWatchTellsOfAFaultAgainAfterAFileThatWasRight(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	path := written(t, base)
	watching(t, path, func(t *testing.T, w *watched) {
		for range 2 {
			require.NoError(t, os.WriteFile(path, []byte(base+"interval: soon"), 0o600))
			w.looks(3)
			require.NoError(t, os.WriteFile(path, []byte(base), 0o600))
			w.looks(3)
		}
		require.Len(t, w.refused, 2)
		require.Len(t, w.configs, 2, "that the file is right again is told of, even without a change")
	})
}

func TestWatchTakesAnEmptyFileAfterTwoLooksOnly(t *testing.T) {
	path := written(t, "interval: 20s\n")
	watching(t, path, func(t *testing.T, w *watched) {
		require.NoError(t, os.Remove(path))
		w.looks(2)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		w.looks(1)
		require.Empty(t, w.configs, "an editor may be half through")
		w.looks(1)
		require.Len(t, w.configs, 1)
		require.Equal(t, 15*time.Second, w.last().Interval)
	}, "--prometheus-url", "http://p", "--manifests", t.TempDir())
}

func TestAFlagStaysStrongerThanAFileThatChanges(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	path := written(t, base)
	watching(t, path, func(t *testing.T, w *watched) {
		require.NoError(t, os.WriteFile(path, []byte(base+"interval: 20s"), 0o600))
		w.looks(2)
		require.Empty(t, w.changes[0].Reloaded)
		require.Equal(t, 40*time.Second, w.last().Interval)
	}, "--interval", "40s")
}

func TestWatchWithoutAFileWaits(t *testing.T) {
	flags := given(t, "--prometheus-url", "http://p", "--manifests", t.TempDir())
	current, err := config.Load(flags)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, config.Watch(ctx, config.WatchOptions{Current: current}))
}

func TestWatchReloadsProfilesAndTheirCatalogue(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	m := newMount(t, base)
	watching(t, m.path(), func(t *testing.T, w *watched) {
		m.swap(base + "profileCatalogue: off\nprofiles: [{model: m, accelerator: H100, alpha: 6}]")
		w.looks(5)
		require.Equal(t, []string{"profiles", "profileCatalogue"}, w.changes[0].Reloaded)
		require.Len(t, w.last().EngineProfiles(), 1)
		m.swap(base + "profiles: [{model: m, accelerator: H100}]")
		w.looks(5)
		require.Len(t, w.refused, 1)
		m.swap(base)
		w.looks(5)
		require.Greater(t, len(w.last().EngineProfiles()), 1)
		require.Empty(t, w.last().Profiles)
	})
}
