package config_test

import (
	"encoding/csv"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/fleet"
)

func TestProfilesAreReadWithEveryField(t *testing.T) {
	c, err := config.Load(given(t, "--config", complete(t, `profiles:
- {model: "*Llama-3.1-8B*", accelerator: H100, precision: FP8, tensorParallel: 2, alpha: 6.07, beta: .0084, gamma: .0424, prefill: .01336, prefillSquared: .829, kvTokens: 400000, maxSequences: 256, batchedTokens: 2048, origin: "measured: by us"}
- {model: m, accelerator: L40S, alpha: 20, beta: -0, kvTokens: 0}
`)))
	require.NoError(t, err)
	want := []fleet.Profile{{
		Model: "*Llama-3.1-8B*", Accelerator: "H100", Precision: "FP8", TensorParallel: 2,
		Cost:     fleet.EngineCost{Alpha: 6.07, Beta: 0.0084, Gamma: 0.0424, Prefill: 0.01336, PrefillSquared: 0.829},
		KVTokens: 400000, MaxSequences: 256, BatchedTokens: 2048, Origin: "measured: by us",
	}, {Model: "m", Accelerator: "L40S", TensorParallel: 1, Cost: fleet.EngineCost{Alpha: 20}}}
	require.Equal(t, want, c.Profiles)
	require.Equal(t, want, c.EngineProfiles()[:2], "the administrator's come first")
	require.Empty(t, c.Warnings())
	again, err := config.Load(given(t, "--config", written(t, c.Effective())))
	require.NoError(t, err)
	require.Equal(t, c.EngineProfiles(), again.EngineProfiles())
}

func TestAllValidationErrorsOfProfilesAreReportedAtOnce(t *testing.T) {
	path := complete(t, `profiles:
- {accelerator: H100, alpha: 6}
- {model: m, alpha: 0.006, beta: -1}
- {model: m, accelerator: H100, alpha: 6, gama: 1, kvTokens: .inf, tensorParallel: 1.5, maxSequences: many}
- {model: "", accelerator: " H100", alpha: .nan, origin: `+strings.Repeat("x", 300)+`}
- {model: "*M", accelerator: H100, alpha: 6, precision: bf16}
- {model: "*m", accelerator: H100, alpha: 7, precision: float16, tensorParallel: 1}
- {model: "*m", accelerator: H100, alpha: 7, tensorParallel: 1}
profileCatalogue: none
`)
	_, err := config.Load(given(t, "--config", path))
	const number = "is below 0.1; write a number from 0.1 to 10000"
	require.Equal(t, []string{
		`profiles: has a row without model; write the model's name as in modelID, with * for any text, such as "*Llama-3.1-8B*"; at most 256 bytes (file wva.yaml, line 4)`,
		`profiles: has a row without accelerator; write the name that variants use, such as H100; at most 256 bytes (file wva.yaml, line 5)`,
		`profiles: alpha "0.006" ` + number + ` (file wva.yaml, line 5)`,
		`profiles: beta "-1" is below 0; write a number from 0 to 1000 (file wva.yaml, line 5)`,
		`profiles: unknown key "gama"; did you mean gamma? (file wva.yaml, line 6)`,
		`profiles: tensorParallel "1.5" is not a whole number; write a whole number from 1 to 4096 (file wva.yaml, line 6)`,
		`profiles: kvTokens ".inf" is not a number; write a number from 0 to 1e+12 (file wva.yaml, line 6)`,
		`profiles: maxSequences "many" is not a number; write a whole number from 0 to 1000000 (file wva.yaml, line 6)`,
		`profiles: model "" is empty, or has spaces around it; write the model's name as in modelID, with * for any text, such as "*Llama-3.1-8B*"; at most 256 bytes (file wva.yaml, line 7)`,
		`profiles: accelerator " H100" is empty, or has spaces around it; write the name that variants use, such as H100; at most 256 bytes (file wva.yaml, line 7)`,
		`profiles: alpha ".nan" is not a number; write a number from 0.1 to 10000 (file wva.yaml, line 7)`,
		`profiles: origin "` + strings.Repeat("x", 60) + `..." is too long; write the source of the figures, on one line; at most 256 bytes (file wva.yaml, line 7)`,
		`profiles: "*m on H100, precision bf16, TP 1" is listed twice; remove one of the two (file wva.yaml, line 9)`,
		`profileCatalogue: "none" is unknown; write on or off (file wva.yaml, line 11)`,
	}, errorLines(t, err, path))
}

func TestProfilesThatAreNeverUsedCauseWarnings(t *testing.T) {
	c, err := config.Load(given(t, "--config", complete(t, `profiles:
- {model: "*", accelerator: H100, alpha: 6}
- {model: "*llama*", accelerator: H100, precision: fp8, alpha: 6}
- {model: "*", accelerator: h100, alpha: 6}
`)))
	require.NoError(t, err)
	require.Equal(t, []string{
		`profile of "*llama*" on H100 is never used: a row above it fits each variant that it fits`,
		`profile of "*" on h100 has an accelerator that is not in accelerators; the names of variants must be equal to it, case included`,
	}, c.Warnings())
}

func TestCatalogueIsSoundAndCanBeTurnedOff(t *testing.T) {
	c, err := config.Load(given(t, "--config", complete(t)))
	require.NoError(t, err)
	shipped, err := config.ShippedProfiles()
	require.NoError(t, err)
	require.NotEmpty(t, shipped)
	require.Equal(t, shipped, c.EngineProfiles())
	require.Contains(t, c.Effective(), "profileCatalogue: on # "+strconv.Itoa(len(shipped))+" shipped profiles\n")
	require.Contains(t, c.EffectiveWithOrigins(), "profileCatalogue: on # default; "+strconv.Itoa(len(shipped))+" shipped profiles\n")
	for i, p := range shipped {
		require.NoError(t, p.Cost.Check(), p)
		require.NotEmpty(t, p.Origin, p)
		require.Contains(t, acceleratorNames(c), p.Accelerator)
		require.Positive(t, p.Cost.Prefill, p)
		for _, before := range shipped[:i] {
			require.False(t, before.Covers(p), "%+v hides %+v", before, p)
		}
	}
	c, err = config.Load(given(t, "--config", complete(t, "profileCatalogue: off")))
	require.NoError(t, err)
	require.Empty(t, c.EngineProfiles())
	require.Contains(t, c.Effective(), "profileCatalogue: off # 0 shipped profiles\n")
}

func acceleratorNames(c *config.Config) []fleet.Accelerator {
	var names []fleet.Accelerator
	for _, a := range c.Accelerators {
		names = append(names, a.Name)
	}
	return names
}

func TestCatalogueHasCommonModels(t *testing.T) {
	c, err := config.Load(given(t, "--config", complete(t)))
	require.NoError(t, err)
	profiles := fleet.NewProfiles(c.EngineProfiles())
	for _, test := range []struct {
		model       string
		accelerator fleet.Accelerator
		found       bool
	}{
		{"meta-llama/Llama-3.1-8B-Instruct", "H100", true},
		{"meta-llama/Meta-Llama-3.1-8B", "A100", true},
		{"Qwen/Qwen3-32B", "B200", true},
		{"Qwen/Qwen3-32B-AWQ", "B200", false},
		{"Qwen/Qwen3-32B", "L40S", false}, // does not fit on one
		{"meta-llama/Llama-3.1-70B-Instruct", "H100", false},
	} {
		_, found := profiles.Find(fleet.ProfileKey{Model: test.model, Accelerator: test.accelerator, Precision: "", TensorParallel: 0})
		require.Equal(t, test.found, found, test.model)
	}
}

func TestCatalogueHasTheFiguresOfItsSource(t *testing.T) {
	file, err := os.Open("testdata/engine_profiles.csv")
	require.NoError(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	shipped, err := config.ShippedProfiles()
	require.NoError(t, err)
	profiles := fleet.NewProfiles(slices.DeleteFunc(shipped, func(p fleet.Profile) bool { return !strings.HasPrefix(p.Origin, "kernel tables") }))
	accelerators := map[string]fleet.Accelerator{"a100_sxm": "A100", "l40s": "L40S", "h100_sxm": "H100", "h200_sxm": "H200", "b200_sxm": "B200"}
	const host = 0.026 // ms per request
	compared := 0
	for _, row := range rows[1:] {
		found, ok := profiles.Find(fleet.ProfileKey{Model: row[1], Accelerator: accelerators[row[0]], Precision: "bf16", TensorParallel: 1})
		if !ok {
			require.Equal(t, []string{"l40s", "Qwen3-32B"}, row[:2])
			continue
		}
		want := fleet.EngineCost{Alpha: figure(t, row[2]), Beta: figure(t, row[3]) + host, Gamma: figure(t, row[4]), Prefill: figure(t, row[7]), PrefillSquared: figure(t, row[8])}
		for _, f := range fleet.CostFigures() {
			require.InDelta(t, *f.Of(&want), *f.Of(&found.Cost), 6e-4**f.Of(&want), "%s of %v", f.Name, row[:2])
		}
		compared++
	}
	require.Equal(t, 14, compared)
}

func TestCatalogueHasQwen32BOnTwoH100(t *testing.T) {
	shipped, err := config.ShippedProfiles()
	require.NoError(t, err)
	found, ok := fleet.NewProfiles(shipped).Find(fleet.ProfileKey{Model: "Qwen/Qwen3-32B", Accelerator: "H100", Precision: "bf16", TensorParallel: 2})
	require.True(t, ok)
	require.Equal(t, "bf16", found.Precision)
	require.Equal(t, 2, found.TensorParallel)
	// 90 % of 160 GB, minus 65.5 GB of weights and 4 GB, at 256 KiB a token: 64 layers, 8 heads of
	// 128 for keys and values, of 2 bytes.
	require.InDelta(t, (0.9*160e9-65.5e9-4e9)/(64*8*128*2*2), found.KVTokens, 10_000)
}

func figure(t *testing.T, text string) float64 {
	t.Helper()
	value, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return value
}
