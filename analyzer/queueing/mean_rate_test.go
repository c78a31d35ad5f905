package queueing

import (
	"encoding/csv"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestMeanRateIsLimitedByITLOrByWork(t *testing.T) {
	r := Replica{Profile: Profile{Iteration: 0.01}}
	for _, c := range []struct{ itl, want float64 }{{0.04, 7.5}, {0, 10}, {0.01, 0}, {0.005, 0}} {
		if got := MeanRate(r, 0.06, 0.04, c.itl); !closeTo(got, c.want, 1e-12) {
			t.Errorf("ITL %g: %g, want %g", c.itl, got, c.want)
		}
	}
}

// TestMeanRateIsThatOfTheReference uses means of the work over the requests of the Azure trace,
// with O iterations in decode at a mean context of I + O/2 each, as the reference does.
func TestMeanRateIsThatOfTheReference(t *testing.T) {
	truth, profiles, trace := csvNumbers(t, "sizing_truth_chat.csv"), csvNumbers(t, "engine_profiles.csv"), csvNumbers(t, "azure_conv_2023.csv")
	var prompt, squared, output, context float64
	for _, row := range trace {
		i, o := row["ContextTokens"], row["GeneratedTokens"]
		prompt += i / float64(len(trace))
		squared += i * i / float64(len(trace))
		output += o / float64(len(trace))
		context += o * (i + o/2) / float64(len(trace))
	}
	// In the order of the file; the numbers of a profile are unique in it.
	rowOf := map[string]int{"A100": 0, "L40S": 3, "H100": 6, "B200": 12}
	for i, name := range csvNames(t, "sizing_truth_chat.csv", "prof") {
		p := profiles[rowOf[name]]
		r := Replica{Profile: Profile{Iteration: p["dc_alpha_ms"] / 1e3}}
		promptWork := (p["pf_b_ms_per_tok"]*prompt + p["pf_c_ms_per_Mtok2"]*squared/1e6) / 1e3
		decodeWork := (p["dc_beta_ms_per_req"]*output + p["dc_gamma_ms_per_kreqtok"]*context/1e3) / 1e3
		if got, want := MeanRate(r, promptWork, decodeWork, truth[i]["tpot"]/1e3), truth[i]["lam_mean"]; !closeTo(got, want, 3e-4) {
			t.Errorf("%s: %g, want %g", name, got, want)
		}
	}
}

func csvRecords(t *testing.T, name string) [][]string {
	t.Helper()
	data, err := os.ReadFile("../../../shared/data/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no reference data beside the checkout: %s", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(string(data), "\ufeff"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// csvNumbers returns the numbers of a table by the names of its columns.
func csvNumbers(t *testing.T, name string) []map[string]float64 {
	t.Helper()
	records := csvRecords(t, name)
	all := make([]map[string]float64, len(records)-1)
	for i, record := range records[1:] {
		all[i] = map[string]float64{}
		for j, field := range record {
			if x, err := strconv.ParseFloat(field, 64); err == nil {
				all[i][records[0][j]] = x
			}
		}
	}
	return all
}

func csvNames(t *testing.T, name, column string) []string {
	t.Helper()
	records := csvRecords(t, name)
	var all []string
	for j, title := range records[0] {
		if title == column {
			for _, record := range records[1:] {
				all = append(all, record[j])
			}
		}
	}
	return all
}
