package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
)

// A certificate that cannot be read for a moment makes the file invalid by itself. No ConfigMap is
// at fault then, and their settings stay.
func TestAFileThatBecomesInvalidTakesNoConfigMapAway(t *testing.T) {
	certificate := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(certificate, nil, 0o600))
	l := newLiveConfig(t, "grpc: {tls: {certFile: "+certificate+", keyFile: "+certificate+"}}\n")
	variants := []fleet.Variant{variant("team-a", "v")}
	most := func() int { return l.current.LimitsOf(variants)[0].Max }
	text := func(most int) config.Map {
		return config.Map{Namespace: "wva", Name: "a", Data: map[string]string{"k": fmt.Sprintf("maxAccelerators: [{max: %d}]", most)}}
	}
	own := config.Map{Namespace: "team-a", Name: "own", Data: map[string]string{"k": "maxAccelerators: [{max: 3}]"}}
	use := func(found ...config.Map) error {
		rejected, err := l.Use(found)
		require.Empty(t, rejected)
		return err
	}
	require.NoError(t, use(text(4)))
	require.NoError(t, os.Remove(certificate))
	require.NoError(t, use(text(4), own), "a tenant's change does not need the file")
	require.Equal(t, 3, most())
	err := use(text(5))
	require.ErrorContains(t, err, "the configuration file cannot be used now: grpc.tls.certFile")
	require.Equal(t, 4, most(), "the last valid text stays, and the tenant's is gone")
	require.NoError(t, os.WriteFile(certificate, nil, 0o600))
	require.NoError(t, use(text(5)), "it is tried again")
	require.Equal(t, 5, most())
	require.NoError(t, os.Remove(certificate))
	require.Error(t, use(), "nor is a deletion lost")
	require.NoError(t, os.WriteFile(certificate, nil, 0o600))
	require.NoError(t, use())
	require.Empty(t, l.current.LimitsOf(variants))
}

// hostileMaps are ConfigMaps of a namespace, one with each text.
func hostileMaps(namespace string, texts ...string) (found []config.Map) {
	for i, text := range texts {
		found = append(found, config.Map{Namespace: namespace, Name: fmt.Sprintf("m%03d", i), Data: map[string]string{"k": text}})
	}
	return found
}

func TestManyKeysAndErrorsOfATenantAreBounded(t *testing.T) {
	keys := make(map[string]string)
	var unknown, rows strings.Builder
	for i := range 5000 {
		keys[fmt.Sprintf("k%d", i)] = "a: 1"
		fmt.Fprintf(&unknown, "k%d: 1\n", i)
	}
	rows.WriteString("models:")
	for range 99 {
		rows.WriteString("\n- {retention: soon}")
	}
	for _, found := range [][]config.Map{
		{{Namespace: "team-a", Name: "keys", Data: keys}},
		hostileMaps("team-a", times(unknown.String(), 100)...),
		hostileMaps("team-a", times(rows.String(), 100)...),
		hostileMaps("team-a", times("models: ["+strings.Repeat("a,", 30000)+"]", 100)...),
	} {
		l := newLiveConfig(t, "")
		rejected, err := l.Use(found)
		require.NoError(t, err)
		require.LessOrEqual(t, len(rejected), 20)
		for _, r := range rejected {
			require.LessOrEqual(t, strings.Count(r.Errors.Error(), "\n"), 20)
			require.Less(t, len(r.Errors.Error()), 10_000)
		}
	}
}

func times(text string, n int) []string {
	return strings.Split(strings.Repeat(text+"\x00", n), "\x00")[:n]
}

func TestAChangeReadsNoOtherNamespaceAgain(t *testing.T) {
	l := newLiveConfig(t, "")
	found := hostileMaps("team-a", times("models: [{model: m, retention: 20m}]\na: 1", 16)...)
	found = append(found, hostileMaps("team-b", times(rowsOfProfiles(90), 16)...)...)
	_, err := l.Use(found)
	require.NoError(t, err)
	retention := time.Minute
	allocations := testing.AllocsPerRun(3, func() {
		retention += time.Minute
		_, err := l.Use(append(slices.Clip(found), hostileMaps("team-c", "models: [{model: m, retention: "+retention.String()+"}]")...))
		require.NoError(t, err)
	})
	require.Less(t, allocations, 20_000.0)
	require.Len(t, l.Rejected(), 16, "those of another namespace stay")
}

func rowsOfProfiles(n int) string {
	var rows strings.Builder
	rows.WriteString("profiles:")
	for i := range n {
		fmt.Fprintf(&rows, "\n- {model: m%d, accelerator: L4, alpha: 5}", i)
	}
	return rows.String()
}

func TestAFieldWithoutAValueSetsNothing(t *testing.T) {
	l := newLiveConfig(t, "serviceClasses: [{name: premium, priority: 10, namespaces: [a]}]")
	require.Empty(t, l.use("wva/a/k", "serviceClasses: [{name: premium, priority: , ttft: 1s}]"))
	require.Equal(t, []fleet.ServiceClass{
		{Name: "premium", Priority: 10, Namespaces: []string{"a"}, Objective: fleet.Objective{TTFT: time.Second, Percentile: 0.95}},
	}, l.current.ServiceClasses)
}
