package queueing

import (
	"encoding/csv"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

const reference = "../../../shared/data"

func readTable(t testing.TB, name string) []map[string]string {
	t.Helper()
	file, err := os.Open(filepath.Join(reference, name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no reference data beside the checkout: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var table []map[string]string
	for _, row := range rows[1:] {
		record := map[string]string{}
		for i, name := range rows[0] {
			record[name] = row[i]
		}
		table = append(table, record)
	}
	return table
}

func number(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

func engineProfiles(t testing.TB) map[string]Profile {
	profiles := map[string]Profile{}
	for _, row := range readTable(t, "engine_profiles.csv") {
		profiles[row["system"]+" "+row["model"]] = Profile{
			Iteration: number(row["dc_alpha_ms"]) / 1e3, PerSequence: number(row["dc_beta_ms_per_req"]) / 1e3,
			PerContextToken: number(row["dc_gamma_ms_per_kreqtok"]) / 1e6,
			PerPromptToken:  number(row["pf_b_ms_per_tok"]) / 1e3, PerPromptTokenSquared: number(row["pf_c_ms_per_Mtok2"]) / 1e9,
		}
	}
	return profiles
}

func azureLengths(t testing.TB) (prompts, outputs []float64) {
	for _, row := range readTable(t, "azure_conv_2023.csv") {
		prompts = append(prompts, number(row["ContextTokens"]))
		outputs = append(outputs, number(row["GeneratedTokens"]))
	}
	return prompts, outputs
}

var systems = map[string]string{"H100": "h100_sxm", "A100": "a100_sxm", "L40S": "l40s", "B200": "b200_sxm"}

// TestFormulaIsNearTheTruthOfChat compares the formula with rates that another simulator found.
// That simulator uses the pairs of prompt and output; the formula assumes them independent, which
// is 3 % of the work of this trace.
func TestFormulaIsNearTheTruthOfChat(t *testing.T) {
	profiles := engineProfiles(t)
	prompts, outputs := azureLengths(t)
	in, err := SampledLengths(prompts)
	if err != nil {
		t.Fatal(err)
	}
	out, err := SampledLengths(outputs)
	if err != nil {
		t.Fatal(err)
	}
	mix, err := NewMix(in, out)
	if err != nil {
		t.Fatal(err)
	}
	var s Sizer
	sum, rows := 0.0, readTable(t, "sizing_truth_chat.csv")
	for _, row := range rows {
		a, err := s.MaxRate(Question{
			Replica:    Replica{Profile: profiles[systems[row["prof"]]+" Llama-3.1-8B"], MaxSequences: 256, BatchedTokens: int(number(row["mbt"]))},
			Mix:        mix,
			Objective:  Objective{TTFT: number(row["ttft"]) / 1e3, ITL: number(row["tpot"]) / 1e3, Percentile: number(row["level"])},
			Dispersion: number(row["cv2"]),
		})
		if err != nil {
			t.Fatal(err)
		}
		off := a.Rate/number(row["lam"]) - 1
		sum += math.Abs(off)
		if math.Abs(off) > 0.1 {
			t.Errorf("%s, %s tokens, CV² %s, %s: %v, true %s", row["prof"], row["mbt"], row["cv2"], row["level"], a, row["lam"])
		}
	}
	if mean := sum / float64(len(rows)); mean > 0.03 {
		t.Errorf("%.1f %% off on average", 100*mean)
	}
}
