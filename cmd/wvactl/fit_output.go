package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/wva-project/wva/analyzer/fit"
	"github.com/wva-project/wva/fleet"
)

// rendered returns the output.
func (f *fitFlags) rendered(fits []fitting) (string, error) {
	switch f.output {
	case "json":
		return fitJSON(fits)
	case "yaml":
		return fitYAML(fits)
	}
	if f.all {
		return fitLines(fits), nil
	}
	return fitText(fits[0]), nil
}

// rounded returns a cost with four digits, more than rows determine.
func rounded(c fleet.EngineCost) fleet.EngineCost {
	for _, figure := range fleet.CostFigures() {
		at := figure.Of(&c)
		*at, _ = strconv.ParseFloat(strconv.FormatFloat(*at, 'g', 4, 64), 64)
	}
	return c
}

// fitText is one fit for people.
func fitText(one fitting) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %s\n\n", one.Key, counted(one.Rows), spans(one.rows))
	if one.Repeated > 0 {
		fmt.Fprintf(&b, "%s repeated and counted once\n\n", counted(one.Repeated))
	}
	units := map[string]string{
		"alpha": "ms per iteration", "beta": "ms per request in decode", "gamma": "ms per thousand tokens of context",
		"prefill": "ms per token of a prompt", "prefillSquared": "ms per million squared tokens of a prompt",
		"experts": "ms if a batch uses all experts", "sparsity": "experts of a layer for each one that a token uses",
	}
	cost := rounded(one.Cost)
	for _, figure := range fleet.CostFigures() {
		if (figure.Name == "experts" || figure.Name == "sparsity") && cost.Experts == 0 {
			continue
		}
		fmt.Fprintf(&b, "  %-15s %-9s %s\n", figure.Name, decimal(*figure.Of(&cost)), units[figure.Name])
	}
	b.WriteString("\n")
	writeDeviation(&b, "TPOT", one.TPOT, func(r fit.Row) float64 { return r.TPOT })
	writeDeviation(&b, "TTFT", one.TTFT, func(r fit.Row) float64 { return r.TTFT })
	if left := one.LeftOut; left != nil {
		fmt.Fprintf(&b, "  each half of the rows foretold by the other: MAPE of TPOT %s, of TTFT %s\n", percent(left.TPOT), percent(left.TTFT))
	}
	for i, w := range one.Warnings {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	fmt.Fprintf(&b, "\nin the trigger's metadata:\n  profile: %q\n", cost.String())
	if entry, err := profileEntry(one); err == nil {
		fmt.Fprintf(&b, "in the configuration:\n  profiles:\n  %s", entry)
	}
	return b.String()
}

func writeDeviation(b *strings.Builder, name string, d fit.Deviation, of func(fit.Row) float64) {
	fmt.Fprintf(b, "  %s: MAPE %s; worst %+.1f %%: %s ms fitted, %s ms measured at concurrency %v, isl %v, osl %v (line %d)\n",
		name, percent(d.Mean), 100*(d.Fitted/of(d.Worst)-1), short(d.Fitted), short(of(d.Worst)),
		d.Worst.Concurrency, d.Worst.Prompt, d.Worst.Output, d.Worst.Line)
}

// spans returns the ranges of the rows.
func spans(rows []fit.Row) string {
	span := func(name string, of func(fit.Row) float64) string {
		low, high := math.Inf(1), math.Inf(-1)
		for _, r := range rows {
			low, high = min(low, of(r)), max(high, of(r))
		}
		if low == high {
			return name + " " + decimal(low)
		}
		return name + " " + decimal(low) + " to " + decimal(high)
	}
	return strings.Join([]string{
		span("concurrency", func(r fit.Row) float64 { return r.Concurrency }),
		span("isl", func(r fit.Row) float64 { return r.Prompt }),
		span("osl", func(r fit.Row) float64 { return r.Output }),
	}, ", ")
}

// fitLines is a table with a line for each fit.
func fitLines(fits []fitting) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ENGINE\tROWS\tTPOT\tLEFT OUT\tTTFT\tWARNINGS\tPROFILE")
	for _, one := range fits {
		if one.err != nil {
			fmt.Fprintf(w, "%s\t%d\t-\t-\t-\t-\t%s\n", one.Key, len(one.rows), oneLine(one.err))
			continue
		}
		left := "-"
		if one.LeftOut != nil {
			left = percent(one.LeftOut.TPOT)
		}
		var warned []string
		for _, warning := range one.Warnings {
			warned = append(warned, warning.Parameter)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n",
			one.Key, one.Rows, percent(one.TPOT.Mean), left, percent(one.TTFT.Mean), cmp.Or(strings.Join(warned, ","), "-"), rounded(one.Cost))
	}
	_ = w.Flush() // into memory
	return b.String()
}

// oneLine returns the text of an error on one line.
func oneLine(err error) string {
	return strings.NewReplacer(":\n  ", ": ", "\n  ", "; ", "\n", "; ").Replace(err.Error())
}

func fitJSON(fits []fitting) (string, error) {
	type document struct {
		fit.Key
		fit.Result
		Error string `json:"error,omitzero"`
	}
	var b strings.Builder
	for _, one := range fits {
		d := document{Key: one.Key, Result: one.Result}
		if one.err != nil {
			d.Error = one.err.Error()
		}
		line, err := json.Marshal(d)
		if err != nil {
			return "", fmt.Errorf("%s: %w", one.Key, err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String(), nil
}

// fitYAML is a list for the configuration's profiles. If there are several fits, one that failed is
// a comment.
func fitYAML(fits []fitting) (string, error) {
	var b strings.Builder
	for _, one := range fits {
		entry, err := profileEntry(one)
		if err != nil {
			if len(fits) == 1 {
				return "", err
			}
			entry = fmt.Sprintf("# %s: %s\n", one.Key, oneLine(err))
		}
		for _, w := range one.Warnings {
			fmt.Fprintf(&b, "# warning: %s\n", w)
		}
		b.WriteString(entry)
	}
	return b.String(), nil
}

// profileEntry returns an entry of the configuration's profiles on a line of its own.
func profileEntry(one fitting) (string, error) {
	switch {
	case one.err != nil:
		return "", one.err
	case one.Model == "" || one.GPU == "":
		return "", errors.New("the rows have no model and accelerator; give --model and --gpu")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "- {model: %s, accelerator: %s", quotedYAML(one.Model), quotedYAML(acceleratorName(one.GPU)))
	if precision := fleet.CanonicalPrecision(one.Precision); precision != "" {
		fmt.Fprintf(&b, ", precision: %s", quotedYAML(precision))
	}
	fmt.Fprintf(&b, ", tensorParallel: %d", max(1, one.TensorParallel))
	cost := rounded(one.Cost)
	for i, figure := range fleet.CostFigures() {
		if x := *figure.Of(&cost); i == 0 || x != 0 {
			fmt.Fprintf(&b, ", %s: %s", figure.Name, decimal(x))
		}
	}
	origin := fmt.Sprintf("fit to %s", counted(one.Rows))
	if one.Engine != "" {
		origin += " of " + one.Engine
	}
	fmt.Fprintf(&b, ", origin: %s}\n", quotedYAML(fmt.Sprintf("%s; error of TPOT %s", origin, percent(one.TPOT.Mean))))
	return b.String(), nil
}

// acceleratorName turns the name of a board in benchmarks into that of variants: h100_sxm is H100.
func acceleratorName(gpu string) string {
	if name, _, found := strings.Cut(gpu, "_"); found || gpu == strings.ToLower(gpu) {
		return strings.ToUpper(name)
	}
	return gpu
}

// quotedYAML quotes a text: a JSON string is one of YAML.
func quotedYAML(text string) string {
	quoted, _ := json.Marshal(text) // a string is always encoded
	return string(quoted)
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func short(x float64) string {
	if x >= 100 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }
