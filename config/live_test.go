package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
)

// live is a configuration in use whose ConfigMaps a test changes. The server's namespace is wva.
type live struct {
	*testing.T
	*config.Live
	current *config.Config
	change  config.Change
	applied int
}

func newLiveConfig(t *testing.T, text string, arguments ...string) *live {
	t.Helper()
	c, err := config.Load(given(t, append(arguments, "--config", written(t, needed+t.TempDir()+"\n"+text))...))
	require.NoError(t, err)
	l := &live{T: t, current: c}
	l.Live = config.NewLive(c, "wva", func(c *config.Config, change config.Change) error {
		l.current, l.change, l.applied = c, change, l.applied+1
		return nil
	})
	return l
}

// use puts ConfigMaps into use, each given as "namespace/name/key", text; it returns the new
// rejections, a line each.
func (l *live) use(pairs ...string) string {
	l.Helper()
	var found []config.Map
	for i := 0; i < len(pairs); i += 2 {
		name := strings.Split(pairs[i], "/")
		found = append(found, config.Map{Namespace: name[0], Name: name[1], Data: map[string]string{name[2]: pairs[i+1]}})
	}
	rejected, err := l.Use(found)
	require.NoError(l, err)
	var lines []string
	for _, r := range rejected {
		lines = append(lines, r.Namespace+"/"+r.Name+" "+r.String())
	}
	return strings.Join(lines, "\n")
}

func variant(namespace, name string) fleet.Variant {
	return fleet.Variant{ID: fleet.VariantID{Namespace: namespace, Name: name}, Model: fleet.ModelID{Namespace: namespace, Name: "m"}}
}

// modelsOf returns a variant of each model.
func modelsOf(namespace string, models ...string) (variants []fleet.Variant) {
	for _, name := range models {
		v := variant(namespace, name)
		v.Model.Name = name
		variants = append(variants, v)
	}
	return variants
}

func TestGlobalConfigMapsMergeOverTheFileFieldByField(t *testing.T) {
	const file = `
scaleDown: {headroom: 0.3, minReplicaLifetime: 10m}
serviceClasses: [{name: premium, priority: 10, namespaces: [team-a]}]
models: [{namespace: "*", scaleToZero: false}]
`
	for _, test := range []struct {
		name string
		maps []string
		want func(t *testing.T, c *config.Config)
	}{
		{"a field leaves its neighbours", []string{"wva/a/k", "scaleDown: {headroom: 0.5}"}, func(t *testing.T, c *config.Config) {
			require.Equal(t, config.ScaleDown{Headroom: 0.5, MinReplicaLifetime: 10 * time.Minute}, c.ScaleDown)
		}},
		{"the last name takes precedence", []string{"wva/b/k", "scaleDown: {headroom: 0.6}", "wva/a/k", "scaleDown: {headroom: 0.5}"}, func(t *testing.T, c *config.Config) {
			require.InDelta(t, 0.6, c.ScaleDown.Headroom, 0)
			require.Equal(t, "ConfigMap wva/b, key k, line 1", c.Origin("scaleDown.headroom").String())
		}},
		{"the last key takes precedence", []string{"wva/a/z", "scaleDown: {headroom: 0.6}"}, func(t *testing.T, c *config.Config) {
			require.InDelta(t, 0.6, c.ScaleDown.Headroom, 0)
		}},
		{"a price beside the speed of the catalogue", []string{"wva/prices/k", "accelerators: [{name: H100, price: 4.5}]"}, func(t *testing.T, c *config.Config) {
			require.Contains(t, c.Accelerators, fleet.AcceleratorSpec{Name: "H100", Speed: 3.2, Price: 4.5})
			require.Contains(t, c.Accelerators, fleet.AcceleratorSpec{Name: "L4", Speed: 0.34})
		}},
		{"a further grant keeps the priority, and a class is added", []string{"wva/a/k", "serviceClasses: [{name: premium, namespaces: [team-b]}, {name: batch, priority: -1, ttft: 5s}]"}, func(t *testing.T, c *config.Config) {
			require.Equal(t, []fleet.ServiceClass{
				{Name: "premium", Priority: 10, Namespaces: []string{"team-b"}},
				{Name: "batch", Priority: -1, Objective: fleet.Objective{TTFT: 5 * time.Second, Percentile: 0.95}},
			}, c.ServiceClasses)
		}},
		{"later rows of models override", []string{"wva/a/k", "models: [{namespace: team-a, scaleToZero: true}]"}, func(t *testing.T, c *config.Config) {
			require.Empty(t, c.ModelsOf([]fleet.Variant{variant("team-a", "v")}))
			require.Len(t, c.ModelsOf([]fleet.Variant{variant("team-b", "v")}), 1)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLiveConfig(t, file)
			require.Empty(t, l.use(test.maps...))
			test.want(t, l.current)
			require.Equal(t, 1, l.applied)
			require.Empty(t, l.use(test.maps...))
			require.Equal(t, 1, l.applied, "equal ConfigMaps change nothing")
			require.Empty(t, l.use())
			require.InDelta(t, 0.3, l.current.ScaleDown.Headroom, 0, "without ConfigMaps the file counts")
		})
	}
}

func TestVariablesAndFlagsTakePrecedenceOverConfigMaps(t *testing.T) {
	l := newLiveConfig(t, "", "--scale-down-headroom", "0.9")
	require.Empty(t, l.use("wva/a/k", "scaleDown: {headroom: 0.5}\nbacklog: {drainWithin: 2m}"))
	require.InDelta(t, 0.9, l.current.ScaleDown.Headroom, 0)
	require.Equal(t, 2*time.Minute, l.current.Backlog.DrainWithin)
}

func TestAnInvalidKeyKeepsItsLastValidText(t *testing.T) {
	l := newLiveConfig(t, "")
	require.Empty(t, l.use("wva/a/k", "scaleDown: {headroom: 0.5}", "wva/b/k", "backlog: {drainWithin: 2m}"))
	wrong := l.use("wva/a/k", "scaleDown: {headroom: much}", "wva/b/k", "backlog: {drainWithin: 3m}")
	require.Equal(t, `wva/a key k: scaleDown.headroom: "much" is not a number; write a number from 0.001 to 100 (ConfigMap wva/a, key k, line 1). In use is its last valid text`, wrong)
	require.InDelta(t, 0.5, l.current.ScaleDown.Headroom, 0)
	require.Equal(t, 3*time.Minute, l.current.Backlog.DrainWithin, "other keys are used")
	require.Empty(t, l.use("wva/a/k", "scaleDown: {headroom: much}", "wva/b/k", "backlog: {drainWithin: 4m}"), "the same errors are reported once")
	require.Empty(t, l.use("wva/b/k", "backlog: {drainWithin: 4m}"))
	require.InDelta(t, 0.2, l.current.ScaleDown.Headroom, 0, "a key that is deleted has no last text")
}

func TestAnInvalidKeyIsNotUsedAfterARestart(t *testing.T) {
	l := newLiveConfig(t, "")
	wrong := l.use("wva/a/k", "scaleDown: {headroom: much}", "wva/b/k", "backlog: {drainWithin: 3m}", "wva/c/k", "prometheus: {url: http://evil}", "wva/d/k", "a: [")
	require.Equal(t, 3, strings.Count(wrong, "In use is nothing of it, since it was never valid while this server runs"), wrong)
	require.Contains(t, wrong, "prometheus.url: cannot be set by a ConfigMap; set it in the configuration file")
	require.InDelta(t, 0.2, l.current.ScaleDown.Headroom, 0)
	require.Equal(t, 3*time.Minute, l.current.Backlog.DrainWithin)
}

// An invalid value counts as invalid although a later key replaces it: that key may be deleted.
func TestAnInvalidValueIsRejectedBelowAnotherOne(t *testing.T) {
	for _, namespace := range []string{"wva", "team-a"} {
		l := newLiveConfig(t, "")
		a, b := namespace+"/a/k", namespace+"/b/k"
		above := "maxAccelerators: [{max: 4}]\nscaleToZero: {retention: 20m}"
		require.Empty(t, l.use(a, "maxAccelerators: [{max: 2}]\nscaleToZero: {retention: 30m}", b, above))
		wrong := l.use(a, "maxAccelerators: [{max: lots}]\nscaleToZero: {retention: long}", b, above)
		require.Contains(t, wrong, `a key k: scaleToZero.retention: "long" is not a duration`)
		require.Contains(t, wrong, `maxAccelerators: max "lots" is not a number`)
		require.Empty(t, l.use(a, "maxAccelerators: [{max: lots}]\nscaleToZero: {retention: long}"))
		require.Equal(t, 2, l.current.LimitsOf([]fleet.Variant{variant("team-a", "v")})[0].Max, "the last valid text of the key")
	}
	l := newLiveConfig(t, "", "--scale-down-headroom", "0.9")
	require.Contains(t, l.use("wva/a/k", "scaleDown: {headroom: much}"), "is not a number", "below a flag too")
}

// Two settings that are valid one by one may be invalid together: the one that was there stays.
func TestAKeyThatContradictsAnotherOneIsRejected(t *testing.T) {
	l := newLiveConfig(t, "")
	require.Empty(t, l.use("wva/b/k", "kvCache: {headroom: 0.7}"))
	wrong := l.use("wva/a/k", "saturation: {kvThreshold: 0.6}", "wva/b/k", "kvCache: {headroom: 0.7}")
	require.Contains(t, wrong, "wva/a key k: kvCache.headroom: 0.7 is not below saturation.kvThreshold")
	require.InDelta(t, 0.7, l.current.KVCache.Headroom, 0)
	require.InDelta(t, 0.8, l.current.Saturation.KVThreshold, 0)
	require.Empty(t, l.use("wva/a/k", "saturation: {kvThreshold: 0.6}", "wva/b/k", "kvCache: {headroom: 0.5}"), "both at once")
	require.InDelta(t, 0.6, l.current.Saturation.KVThreshold, 0)
}

func TestTheOrderInWhichConfigMapsAreFoundDoesNotMatter(t *testing.T) {
	maps := []string{"wva/a/k", "scaleDown: {headroom: 0.5}", "wva/b/k", "scaleDown: {headroom: 0.6}", "team-a/a/k", "models: [{model: m, retention: 20m}]"}
	reversed := []string{maps[4], maps[5], maps[2], maps[3], maps[0], maps[1]}
	one, other := newLiveConfig(t, ""), newLiveConfig(t, "")
	require.Empty(t, one.use(maps...))
	require.Empty(t, other.use(reversed...))
	require.InDelta(t, one.current.ScaleDown.Headroom, other.current.ScaleDown.Headroom, 0)
	variants := []fleet.Variant{variant("team-a", "v")}
	require.Equal(t, one.current.ModelsOf(variants), other.current.ModelsOf(variants))
}

func TestTheConfigMapsOfANamespaceCountForItsVariantsOnly(t *testing.T) {
	l := newLiveConfig(t, "serviceClasses: [{name: premium, priority: 10, namespaces: [team-a], itl: 30ms}]")
	before := l.current
	require.Empty(t, l.use("team-a/own/k", `
scaleToZero: {enabled: false, retention: 20m}
models: [{model: m, serviceClass: premium, ttft: 2s}]
profiles: [{model: m, accelerator: L4, alpha: 5}]
maxAccelerators: [{accelerator: L4, max: 4}]
`))
	require.Equal(t, []string{"team-a"}, l.change.Namespaces)
	require.Empty(t, l.change.Reloaded)
	variants := []fleet.Variant{variant("team-a", "v"), variant("team-b", "v")}
	declared := l.current.Declare(variants)
	require.Equal(t, "premium", declared[0].ServiceClass)
	require.Equal(t, fleet.Objective{TTFT: 2 * time.Second, Percentile: 0.95}, declared[0].Objective)
	require.Equal(t, variants[1], declared[1], "another namespace")
	require.Empty(t, variants[0].ServiceClass, "the tables are not changed")
	require.Equal(t, []fleet.Model{{ID: variants[0].Model, ScaleToZeroOff: true, Retention: 20 * time.Minute}}, l.current.ModelsOf(variants))
	require.Equal(t, []fleet.Limit{{Namespace: "team-a", Accelerator: "L4", Max: 4}}, l.current.LimitsOf(variants))
	profiles := fleet.NewProfiles(l.current.EngineProfiles())
	_, found := profiles.Find(fleet.ProfileKey{Namespace: "team-a", Model: "m", Accelerator: "L4"})
	require.True(t, found)
	_, found = profiles.Find(fleet.ProfileKey{Namespace: "team-b", Model: "m", Accelerator: "L4"})
	require.False(t, found)
	require.Equal(t, 1, l.current.Affected(before, variants))

	stated := variants[0]
	stated.ServiceClass, stated.Objective = "other", fleet.Objective{ITL: time.Second, Percentile: 0.5}
	require.Equal(t, []fleet.Variant{stated}, l.current.Declare([]fleet.Variant{stated}), "a variant keeps its own")
}

// A hostile tenant sets all that its ConfigMap may and may not have.
func TestATenantGetsNoMoreThanTheAdministratorGrants(t *testing.T) {
	const file = `
scaleToZero: {enabled: false}
serviceClasses: [{name: premium, priority: 10, namespaces: [team-a], ttft: 1s}]
maxAccelerators: [{namespace: "*", max: 8}, {namespace: greedy, accelerator: H100, max: 4}]
`
	l := newLiveConfig(t, file)
	variants := []fleet.Variant{variant("greedy", "v"), variant("team-a", "v")}
	others := []any{l.current.Declare(variants[1:]), l.current.ModelsOf(variants[1:]), l.current.LimitsOf(variants[1:]), l.current.IdleWindow(variants), l.current.Accelerators, l.current.ServiceClasses}
	for _, text := range []string{
		"accelerators: [{name: H100, speed: 1, price: 0.01}]", "serviceClasses: [{name: premium, priority: 1000, namespaces: [greedy]}]",
		"fixedAccelerators: [H100]", "interval: 1h", "scaleDown: {headroom: 90}", "prometheus: {url: http://evil}", "profileCatalogue: off",
		"models: [{namespace: team-a, scaleToZero: true}]", "maxAccelerators: [{namespace: team-a, max: 0}]",
		"models: [" + strings.Repeat("{model: m, retention: 1h},", 101) + "]",
	} {
		require.Contains(t, l.use("greedy/own/k", text), "greedy/own key k: ", text)
	}
	require.Empty(t, l.use("greedy/own/k", `
scaleToZero: {enabled: true, retention: 720h}
models: [{model: "*", serviceClass: premium}]
maxAccelerators: [{max: 800}, {accelerator: H100, max: 64}]
`))
	declared := l.current.Declare(variants)
	require.Equal(t, "premium", declared[0].ServiceClass, "the planner says that it is not granted")
	require.Empty(t, declared[0].Objective, "nor is the objective of the class")
	require.Equal(t, []fleet.Limit{{Namespace: "greedy", Max: 8}, {Namespace: "greedy", Accelerator: "H100", Max: 4}}, l.current.LimitsOf(variants[:1]))
	require.Equal(t, []fleet.Model{{ID: variants[0].Model, ScaleToZeroOff: true, Retention: time.Hour}}, l.current.ModelsOf(variants[:1]))
	var told []string
	for _, f := range declared[0].Findings {
		require.Equal(t, fleet.CodeSettingLimited, f.Code)
		told = append(told, f.Text)
	}
	require.Equal(t, []string{
		"in the ConfigMap greedy/own maxAccelerators is 800, and the administrator grants 8, which is used",
		"in the ConfigMap greedy/own maxAccelerators of H100 is 64, and the administrator grants 4, which is used",
		"in the ConfigMap greedy/own retention is 720h, and the longest that the administrator grants is 1h, which is used",
		"in the ConfigMap greedy/own scaleToZero is true, and the administrator has it false, which is used",
	}, told)
	now := []any{l.current.Declare(variants[1:]), l.current.ModelsOf(variants[1:]), l.current.LimitsOf(variants[1:]), l.current.IdleWindow(variants[1:]), l.current.Accelerators, l.current.ServiceClasses}
	require.Equal(t, others, now, "others get what they had")
	require.Equal(t, time.Hour, l.current.IdleWindow(variants), "no longer than the long window")
	l.use("greedy/own/k", "maxAccelerators: [{max: 3}]")
	require.Equal(t, 3, l.current.LimitsOf(variants[:1])[0].Max, "it may lower its own maximum")
}

func TestTheConfigMapsOfANamespaceAreBounded(t *testing.T) {
	l := newLiveConfig(t, "")
	var pairs []string
	for i := range 20 {
		pairs = append(pairs, fmt.Sprintf("team-a/m%02d/k", i), fmt.Sprintf("models: [{model: m%d, retention: 20m}]", i))
	}
	wrong := l.use(append(pairs, "team-b/m/k", "models: [{model: m, retention: 20m}]")...)
	require.Equal(t, 4, strings.Count(wrong, "have more than 16 keys"), wrong)
	require.Equal(t, 4, strings.Count(wrong, "In use is nothing"), wrong)
	require.NotContains(t, wrong, "team-b", "another namespace")
	require.Contains(t, wrong, "team-a/m16 key k")
	earlier := []string{"team-a/a/k", "models: [{model: early, retention: 20m}]"}
	wrong = l.use(append(earlier, pairs...)...)
	require.Contains(t, wrong, "team-a/m15 key k: the ConfigMaps of the namespace have more than 16 keys")
	require.Len(t, l.current.ModelsOf(modelsOf("team-a", "m14", "m15", "early")), 2, "no text of a key beyond them stays in use")

	require.Empty(t, l.use("team-a/big/k", "models: [{model: m, retention: 20m}]"))
	rejected, err := l.Use([]config.Map{{Namespace: "team-a", Name: "big", TooLarge: true}})
	require.NoError(t, err)
	require.Equal(t, "the ConfigMap is too large; keep it below 64 KiB. In use is its last valid text", rejected[0].String())
	require.Len(t, l.current.ModelsOf(modelsOf("team-a", "m")), 1)
	require.Empty(t, l.use())
	rejected, err = l.Use([]config.Map{{Namespace: "team-a", Name: "big", TooLarge: true}})
	require.NoError(t, err)
	require.Equal(t, "the ConfigMap is too large; keep it below 64 KiB. In use is nothing of it, since it was never valid while this server runs", rejected[0].String())
}

func TestConfigMapsThatCannotBeAppliedChangeNothing(t *testing.T) {
	c, err := config.Load(given(t, "--config", written(t, needed+t.TempDir())))
	require.NoError(t, err)
	broken := errors.New("broken")
	l := config.NewLive(c, "wva", func(*config.Config, config.Change) error { return broken })
	found := []config.Map{{Namespace: "wva", Name: "a", Data: map[string]string{"k": "scaleDown: {headroom: 0.5}"}}}
	_, err = l.Use(found)
	require.ErrorIs(t, err, broken)
	broken = nil
	_, err = l.Use(found)
	require.NoError(t, err, "it is tried again")
}

func TestOriginsNameTheConfigMap(t *testing.T) {
	l := newLiveConfig(t, "serviceClasses: [{name: premium, priority: 10, namespaces: [a]}]")
	require.Empty(t, l.use("wva/classes/k.yaml", "backlog:\n  drainWithin: 2m\nserviceClasses: [{name: batch, priority: -1}]"))
	text := l.current.EffectiveWithOrigins()
	require.Contains(t, text, "drainWithin: 2m # ConfigMap wva/classes, key k.yaml, line 2\n")
	require.Regexp(t, `serviceClasses: # ConfigMap wva/classes, key k.yaml, line 3; over rows from file .*, line 3`, text)
}
