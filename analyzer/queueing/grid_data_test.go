package queueing_test

import (
	"encoding/csv"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// The reference data are beside the checkout. Without them the small part of the grid uses
// generated engines and lengths.
const reference = "../../../shared/data/"

// table reads a reference file, each row by the names of its columns. It is empty if there is no
// file.
func table(t testing.TB, name string) []map[string]string {
	file, err := os.Open(reference + name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, column := range lines[0] {
			row[column] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func number(t testing.TB, text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// engines are the fitted engines by accelerator and model.
func engines(t testing.TB) map[string]engine {
	all := map[string]engine{
		// Rounded fits, used without the reference data.
		"H100 8B":  {alpha: 6e-3, beta: 8e-6, gamma: 42e-9, b: 13e-6, c: 0.8e-9},
		"A100 8B":  {alpha: 11e-3, beta: 28e-6, gamma: 81e-9, b: 48e-6, c: 1.8e-9},
		"L40S 8B":  {alpha: 22e-3, beta: 27e-6, gamma: 200e-9, b: 42e-6, c: 3.5e-9},
		"B200 8B":  {alpha: 3e-3, beta: 4e-6, gamma: 18e-9, b: 7e-6, c: 0.4e-9},
		"H200 8B":  {alpha: 4.6e-3, beta: 10e-6, gamma: 30e-9, b: 15e-6, c: 0.8e-9},
		"A100 14B": {alpha: 20e-3, beta: 50e-6, gamma: 106e-9, b: 88e-6, c: 2.7e-9},
		"H100 14B": {alpha: 11e-3, beta: 12e-6, gamma: 54e-9, b: 26e-6, c: 1.5e-9},
		"B200 32B": {alpha: 12e-3, beta: 11e-6, gamma: 37e-9, b: 31e-6, c: 1.7e-9},
	}
	accelerators := map[string]string{"h100_sxm": "H100", "a100_sxm": "A100", "l40s": "L40S", "b200_sxm": "B200", "h200_sxm": "H200"}
	models := map[string]string{"Llama-3.1-8B": "8B", "Qwen3-14B": "14B", "Qwen3-32B": "32B"}
	for _, row := range table(t, "engine_profiles.csv") {
		all[accelerators[row["system"]]+" "+models[row["model"]]] = engine{
			alpha: number(t, row["dc_alpha_ms"]) / 1e3,
			beta:  number(t, row["dc_beta_ms_per_req"]) / 1e3,
			gamma: number(t, row["dc_gamma_ms_per_kreqtok"]) / 1e6,
			b:     number(t, row["pf_b_ms_per_tok"]) / 1e3,
			c:     number(t, row["pf_c_ms_per_Mtok2"]) / 1e9,
		}
	}
	return all
}

// mixes are the lengths of requests by the name of their use.
func mixes(t testing.TB) map[string][]lengthPair {
	all := map[string][]lengthPair{
		// As heavy-tailed as a public trace of code completion: medians of 1,500 and 13.
		"code": generated(1, lognormal{mean: 2000, sigma: 0.75, most: 8192}, lognormal{mean: 28, sigma: 1.24, most: 2000}),
		"long": generated(2, lognormal{mean: 8000, sigma: 0.5}, lognormal{mean: 300, sigma: 0.7}),
		// Never used for tuning.
		"retrieval": generated(3, lognormal{mean: 4000, sigma: 0.4}, lognormal{mean: 150, sigma: 0.7}),
		"reasoning": generated(4, lognormal{mean: 500, sigma: 0.8}, lognormal{mean: 2000, sigma: 0.8, most: 16_384}),
	}
	// Long outputs to tune with: shorter and longer than those of reasoning.
	all["steps"] = generated(6, lognormal{mean: 900, sigma: 1}, lognormal{mean: 1000, sigma: 0.6})
	all["proofs"] = generated(7, lognormal{mean: 300, sigma: 0.6}, lognormal{mean: 4000, sigma: 1, most: 32_768})
	for _, row := range table(t, "azure_conv_2023.csv") {
		all["chat"] = append(all["chat"], lengthPair{number(t, row["ContextTokens"]), number(t, row["GeneratedTokens"])})
	}
	if all["chat"] == nil {
		all["chat"] = generated(5, lognormal{mean: 1155, sigma: 0.8, most: 4200}, lognormal{mean: 211, sigma: 0.8, most: 1000})
	}
	return all
}

// lognormal is a distribution of lengths, cut off at most; the mean is the one before the cut.
type lognormal struct{ mean, sigma, most float64 }

func generated(seed uint64, prompts, outputs lognormal) []lengthPair {
	source := rand.New(rand.NewPCG(seed, 1))
	pairs := make([]lengthPair, 20_000)
	for i := range pairs {
		pairs[i] = lengthPair{prompts.draw(source), outputs.draw(source)}
	}
	return pairs
}

func (l lognormal) draw(source *rand.Rand) float64 {
	length := math.Round(l.mean * math.Exp(l.sigma*source.NormFloat64()-l.sigma*l.sigma/2))
	if l.most > 0 {
		length = min(length, l.most)
	}
	return max(length, 1)
}
