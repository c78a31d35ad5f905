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

// mount is a directory as Kubernetes mounts a ConfigMap: the file is a link into ..data, which is a
// link that is swapped.
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

// watched has the calls of a watch. Between two calls of polls the test may read it.
type watched struct {
	mu       sync.Mutex
	configs  []*config.Config
	changes  []config.Change
	rejected []error
	broken   error // what Apply returns
}

func (w *watched) last() *config.Config { return w.configs[len(w.configs)-1] }

func (w *watched) apply(c *config.Config, change config.Change) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return w.broken
	}
	w.configs, w.changes = append(w.configs, c), append(w.changes, change)
	return nil
}

// watching watches the file in virtual time while a test runs.
func watching(t *testing.T, path string, test func(t *testing.T, w *watched), arguments ...string) {
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
				Live: config.NewLive(current, "", w.apply), Every: time.Second, Reloaded: func() {},
				Rejected: func(err error) {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.rejected = append(w.rejected, err)
				},
			})
		}()
		synctest.Wait()
		test(t, w)
		cancel()
		require.NoError(t, <-ended)
	})
}

// polls waits for so many polls, by the clock of the bubble.
func (w *watched) polls(n int) {
	w.mu.Lock()   // the test has read w before this
	w.mu.Unlock() //nolint:staticcheck // the section is empty on purpose
	time.Sleep(time.Duration(n) * time.Second)
	synctest.Wait()
}

func TestWatchAppliesAMountedConfigMapThatIsSwapped(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	m := newMount(t, base)
	watching(t, m.path(), func(t *testing.T, w *watched) {
		w.polls(5)
		require.Empty(t, w.configs, "nothing changed")
		m.swap(base + "interval: 30s\nmodels: [{model: a/b, scaleToZero: true}]")
		w.polls(1)
		require.Empty(t, w.configs, "one poll is not enough: the file may be half written")
		w.polls(5)
		require.Len(t, w.configs, 1, "a content is reported once")
		require.Equal(t, []string{"interval", "models"}, w.changes[0].Reloaded)
		require.Empty(t, w.changes[0].Pending)
		require.Equal(t, 30*time.Second, w.last().Interval)
		require.Equal(t, "a/b", w.last().Models[0].Model)
		m.swap(base)
		w.polls(2)
		require.Equal(t, 15*time.Second, w.last().Interval)
		require.Empty(t, w.rejected)
	})
}

func TestWatchKeepsThePreviousConfigurationIfTheFileIsInvalid(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	m := newMount(t, base)
	watching(t, m.path(), func(t *testing.T, w *watched) {
		m.swap(base + "interval: soon\nmodells: []")
		w.polls(10)
		require.Empty(t, w.configs)
		require.Len(t, w.rejected, 1, "a content is reported once")
		require.ErrorContains(t, w.rejected[0], `"soon" is not a duration`)
		require.ErrorContains(t, w.rejected[0], `unknown key "modells"`)
		m.swap(base + "interval: 30s")
		w.polls(2)
		require.Equal(t, 30*time.Second, w.last().Interval)
		require.Equal(t, []string{"interval"}, w.changes[0].Reloaded, "compared with the configuration in use")
	})
}

func TestWatchSurvivesAFileThatIsGone(t *testing.T) {
	text := needed + t.TempDir() + "\n"
	path := written(t, text)
	watching(t, path, func(t *testing.T, w *watched) {
		require.NoError(t, os.Remove(path))
		w.polls(5)
		require.Len(t, w.rejected, 1)
		require.ErrorContains(t, w.rejected[0], "cannot be read: no such file or directory")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		w.polls(5)
		require.Len(t, w.configs, 1, "it is applied again, even without a change")
		require.Empty(t, w.changes[0].Reloaded)
	})
}

func TestWatchListsSettingsThatNeedARestart(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	path := written(t, base)
	watching(t, path, func(t *testing.T, w *watched) {
		require.NoError(t, os.WriteFile(path, []byte(base+"grpc: {address: ':7'}\nlog: {format: json}\nmissingData: {keepFor: 7m}"), 0o600))
		w.polls(2)
		require.Equal(t, []string{"log.format", "grpc.address"}, w.changes[0].Pending)
		require.Equal(t, []string{"missingData.keepFor"}, w.changes[0].Reloaded)
		require.Equal(t, ":9090", w.last().GRPC.Address, "a setting that needs a restart stays")
		require.Equal(t, config.SourceDefault, w.last().Origin("grpc.address").Source)
		require.Equal(t, 7*time.Minute, w.last().MissingData.KeepFor)
	})
}

func TestWatchReloadsTheIntervalWithTheSettingsThatFollowIt(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	path := written(t, base)
	watching(t, path, func(t *testing.T, w *watched) {
		require.NoError(t, os.WriteFile(path, []byte(base+"interval: 30m"), 0o600))
		w.polls(2)
		require.Empty(t, w.rejected)
		require.Equal(t, 2*time.Hour, w.last().MaxPlanAge)
		require.Equal(t, []string{"interval", "maxPlanAge"}, w.changes[0].Reloaded)
		require.Empty(t, w.changes[0].Pending)
	})
}

func TestWatchTriesARejectedFileAgain(t *testing.T) {
	path := written(t, "interval: 20s\n")
	certificate := filepath.Join(t.TempDir(), "ca.pem")
	watching(t, path, func(t *testing.T, w *watched) {
		require.NoError(t, os.WriteFile(path, []byte("prometheus: {caFile: "+certificate+"}"), 0o600))
		w.polls(10)
		require.Len(t, w.rejected, 1, "the same errors are reported once")
		require.NoError(t, os.WriteFile(certificate, []byte("x"), 0o600))
		w.polls(1)
		require.Len(t, w.configs, 1)
		require.Equal(t, certificate, w.last().Prometheus.CAFile)
		w.polls(5)
		require.Len(t, w.configs, 1)
	}, "--prometheus-url", "https://p", "--manifests", t.TempDir())
}

func TestWatchKeepsThePreviousConfigurationIfTheNewOneCannotBeApplied(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	path := written(t, base)
	watching(t, path, func(t *testing.T, w *watched) {
		w.broken = errors.New("no certificate in the file")
		require.NoError(t, os.WriteFile(path, []byte(base+"interval: 20s"), 0o600))
		w.polls(5)
		require.Equal(t, []error{w.broken}, w.rejected)
		w.broken = nil
		w.polls(1)
		require.Equal(t, []string{"interval"}, w.changes[0].Reloaded)
	})
}

func TestWatchReportsAnErrorAgainAfterAValidFile(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	path := written(t, base)
	watching(t, path, func(t *testing.T, w *watched) {
		for range 2 {
			require.NoError(t, os.WriteFile(path, []byte(base+"interval: soon"), 0o600))
			w.polls(3)
			require.NoError(t, os.WriteFile(path, []byte(base), 0o600))
			w.polls(3)
		}
		require.Len(t, w.rejected, 2)
		require.Len(t, w.configs, 2, "a valid file is applied again, even without a change")
	})
}

func TestWatchAppliesAnEmptyFileAfterTwoPollsOnly(t *testing.T) {
	path := written(t, "interval: 20s\n")
	watching(t, path, func(t *testing.T, w *watched) {
		require.NoError(t, os.Remove(path))
		w.polls(2)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		w.polls(1)
		require.Empty(t, w.configs, "an editor may be half through")
		w.polls(1)
		require.Len(t, w.configs, 1)
		require.Equal(t, 15*time.Second, w.last().Interval)
	}, "--prometheus-url", "http://p", "--manifests", t.TempDir())
}

func TestAFlagTakesPrecedenceOverAFileThatChanges(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	path := written(t, base)
	watching(t, path, func(t *testing.T, w *watched) {
		require.NoError(t, os.WriteFile(path, []byte(base+"interval: 20s"), 0o600))
		w.polls(2)
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
	require.NoError(t, config.Watch(ctx, config.WatchOptions{Live: config.NewLive(current, "", nil)}))
}

func TestWatchReloadsProfilesAndTheirCatalogue(t *testing.T) {
	base := needed + t.TempDir() + "\n"
	m := newMount(t, base)
	watching(t, m.path(), func(t *testing.T, w *watched) {
		m.swap(base + "profileCatalogue: off\nprofiles: [{model: m, accelerator: H100, alpha: 6}]")
		w.polls(5)
		require.Equal(t, []string{"profiles", "profileCatalogue"}, w.changes[0].Reloaded)
		require.Len(t, w.last().EngineProfiles(), 1)
		m.swap(base + "profiles: [{model: m, accelerator: H100}]")
		w.polls(5)
		require.Len(t, w.rejected, 1)
		m.swap(base)
		w.polls(5)
		require.Greater(t, len(w.last().EngineProfiles()), 1)
		require.Empty(t, w.last().Profiles)
	})
}
