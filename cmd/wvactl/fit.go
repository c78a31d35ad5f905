package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wva-project/wva/analyzer/fit"
)

// fitFlags are the flags of fit.
type fitFlags struct {
	model, gpu, engine, precision string
	tensorParallel                int
	all                           bool
	output                        string
}

func newFitCommand() *cobra.Command {
	var f fitFlags
	command := &cobra.Command{
		Use:   "fit FILE.csv",
		Short: "Fit the profile of an engine to a benchmark",
		Long: `Fit the profile of an engine to the rows of a closed-loop benchmark: N clients, each of which sends a prompt, waits for the whole
answer, and sends the next. The file is CSV with a header; - reads standard input. It needs the columns

  concurrency           requests under way at once
  isl, osl              tokens of a prompt and of an output, on average
  ttft_ms or ttft_s     mean time to the first token; the bare name ttft is in seconds
  tpot_ms or tpot_s     mean time per output token after the first; tpot is in seconds, and itl the same

and reads model, gpu, engine (or backend), tp, precision and mode if it has them. Rows of another mode than agg are left out:
they are of engines that do prefill or decode only.

If a file has several engines, the flags select one: a value matches an equal name, else names that begin with it, also after a
slash. If the file has no such column, the flag is its value.

It prints the cost for the configuration and for the trigger, its error against the rows, and warnings of values that the rows do
not determine. Good rows have five concurrencies from 1 to the highest of interest, prompts of 128, 1,024 and 8,192 tokens, and outputs of 128 and 1,024.`,
		Example: `  wvactl fit rows.csv --model meta-llama/Llama-3.1-8B-Instruct --gpu H100 --precision bf16
  wvactl fit rows.csv --model Qwen3-32B --gpu h100 --tp 4 --output yaml
  wvactl fit rows.csv --all`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return f.run(command, args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&f.model, "model", "", "the model, such as Qwen/Qwen3-32B")
	flags.StringVar(&f.gpu, "gpu", "", "the accelerator, such as H100")
	flags.StringVar(&f.engine, "engine", "", "the engine, such as vllm")
	flags.IntVar(&f.tensorParallel, "tp", 0, "number of accelerators over which each layer is split")
	flags.StringVar(&f.precision, "precision", "", "precision of the weights, such as fp8")
	flags.BoolVar(&f.all, "all", false, "fit every engine in the file, a line each")
	flags.StringVarP(&f.output, "output", "o", "text", "text, json, or yaml: an entry of the configuration's profiles")
	return command
}

func (f *fitFlags) run(command *cobra.Command, path string) error {
	if err := checkOutput(f.output, "text", "json", "yaml"); err != nil {
		return err
	}
	if f.tensorParallel < 0 {
		return usageError{fmt.Errorf("tp %d is below zero; leave it out, or write 1 or more", f.tensorParallel)}
	}
	table, err := readTable(command, path)
	if err != nil {
		return err
	}
	groups := f.chosen(table)
	if len(groups) == 0 {
		return fmt.Errorf("no row of %s matches the flags; the file has %s", path, listed(table.Groups))
	}
	if len(groups) > 1 && !f.all {
		return fmt.Errorf("the rows are of %d engines; select one by --model, --gpu, --engine, --tp or --precision, or give --all: %s", len(groups), listed(groups))
	}
	fits, err := fitted(groups)
	if err != nil && !f.all {
		return err
	}
	text, err := f.rendered(fits)
	if err != nil {
		return err
	}
	if left := leftOut(table); left != "" {
		fmt.Fprintln(command.ErrOrStderr(), left)
	}
	_, err = io.WriteString(command.OutOrStdout(), text)
	return err
}

func readTable(command *cobra.Command, path string) (fit.Table, error) {
	from := command.InOrStdin()
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return fit.Table{}, fmt.Errorf("reading the rows: %w", err)
		}
		defer file.Close()
		from = file
	}
	table, err := fit.ReadTable(from)
	if err != nil {
		return fit.Table{}, fmt.Errorf("%s:\n%w", path, err)
	}
	return table, nil
}

// leftOut returns how many rows do not count, as a line.
func leftOut(t fit.Table) string {
	var parts []string
	if t.Disaggregated > 0 {
		parts = append(parts, fmt.Sprintf("%d rows of engines that do prefill or decode only", t.Disaggregated))
	}
	if t.Incomplete > 0 {
		parts = append(parts, fmt.Sprintf("%d rows that lack a figure", t.Incomplete))
	}
	if len(parts) == 0 {
		return ""
	}
	return "left out of the file: " + strings.Join(parts, ", ")
}

// chosen returns the groups that match the flags. The flags fill in columns that the file does not
// have.
func (f *fitFlags) chosen(t fit.Table) []fit.Group {
	groups := t.Groups
	for _, choice := range []struct {
		column, flag string
		of           func(*fit.Key) *string
	}{
		{"model", f.model, func(k *fit.Key) *string { return &k.Model }},
		{"gpu", f.gpu, func(k *fit.Key) *string { return &k.GPU }},
		{"engine", f.engine, func(k *fit.Key) *string { return &k.Engine }},
		{"precision", f.precision, func(k *fit.Key) *string { return &k.Precision }},
	} {
		switch {
		case choice.flag == "":
		case t.Names(choice.column):
			groups = narrowed(groups, choice.flag, choice.of)
		default:
			for i := range groups {
				*choice.of(&groups[i].Key) = choice.flag
			}
		}
	}
	if f.tensorParallel == 0 {
		return groups
	}
	var kept []fit.Group
	for _, g := range groups {
		if !t.Names("tp") {
			g.TensorParallel = f.tensorParallel
		}
		if g.TensorParallel == f.tensorParallel {
			kept = append(kept, g)
		}
	}
	return kept
}

// narrowed returns the groups with the value as their name; if there is none, those whose name
// begins with it, also after a slash.
func narrowed(groups []fit.Group, value string, of func(*fit.Key) *string) []fit.Group {
	value = strings.ToLower(value)
	var equal, begin []fit.Group
	for _, g := range groups {
		name := strings.ToLower(*of(&g.Key))
		_, short, _ := strings.Cut(name, "/")
		switch {
		case name == value || short == value:
			equal = append(equal, g)
		case strings.HasPrefix(name, value) || strings.HasPrefix(short, value):
			begin = append(begin, g)
		}
	}
	if len(equal) > 0 {
		return equal
	}
	return begin
}

// mostListed is the number of engines of a file that a message names.
const mostListed = 20

// listed names groups, a line each.
func listed(groups []fit.Group) string {
	var b strings.Builder
	for i, g := range groups {
		if i == mostListed {
			fmt.Fprintf(&b, "\n  and %d more", len(groups)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %s: %s", g.Key, counted(len(g.Rows)))
	}
	return b.String()
}

func counted(rows int) string {
	if rows == 1 {
		return "1 row"
	}
	return strconv.Itoa(rows) + " rows"
}

// fitting is a group with the fit to its rows.
type fitting struct {
	fit.Key
	fit.Result
	rows []fit.Row
	err  error
}

// fitted fits each group. The error joins those of all groups.
func fitted(groups []fit.Group) ([]fitting, error) {
	var fits []fitting
	var wrong []error
	for _, g := range groups {
		one := fitting{Key: g.Key, rows: g.Rows}
		if one.Result, one.err = fit.Fit(g.Rows); one.err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", g.Key, one.err))
		}
		fits = append(fits, one)
	}
	return fits, errors.Join(wrong...)
}
