package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wva-project/wva/analyzer/fit"
)

// fitFlags are the flags of fit.
type fitFlags struct {
	model, gpu, engine, precision string
	tensorParallel                int
	experts, expertsPerToken      int
	unit                          string
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
  ttft_ms or ttft_s     mean time to the first token; ttft_us is in microseconds, the bare name ttft in seconds
  tpot_ms or tpot_s     mean time per output token after the first; with the same units, and itl the same

and reads model, gpu, engine (or backend), tp, precision and mode if it has them. Rows of another mode than agg are left out:
they are of engines that do prefill or decode only.

If a file has several engines, the flags select one: a value matches an equal name, else names that begin with it, also after a
slash. If the file has no such column, the flag is its value.

The units of times that are unlikely are questioned: a median TPOT above 500 ms or below 0.5 ms, or a TTFT far below TPOT.
--unit confirms or corrects the unit of both. Rows that contradict each other are rejected, with their lines: TPOT that falls by
more than 20 % as concurrency rises at equal lengths, or a fit that misses TPOT by more than 30 %.

In a mixture-of-experts model the time of an iteration grows with the experts that a batch uses. How fast is known for many
published models by their names; for others give --experts and --experts-per-token of the model's config.json, or --experts 1 for
a model without experts. If nothing is known, the rows tell.

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
	flags.IntVar(&f.experts, "experts", 0, "routed experts of a layer of the model; 1 for a model without experts")
	flags.IntVar(&f.expertsPerToken, "experts-per-token", 0, "how many of the experts each token uses")
	flags.StringVar(&f.unit, "unit", "", "unit of the times, whatever the names of the columns say: ms, s or us")
	flags.BoolVar(&f.all, "all", false, "fit every engine in the file, a line each")
	flags.StringVarP(&f.output, "output", "o", "text", "text, json, or yaml: an entry of the configuration's profiles")
	return command
}

func (f *fitFlags) run(command *cobra.Command, path string) error {
	if err := checkOutput(f.output, "text", "json", "yaml"); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return usageError{err}
	}
	table, err := f.readTable(command, path)
	if err != nil {
		return err
	}
	groups := f.chosen(table)
	if len(groups) == 0 {
		return fmt.Errorf("no row of %s matches the flags; the file has %s", printable(path), listed(table.Groups))
	}
	if len(groups) > 1 && !f.all {
		return fmt.Errorf("the rows are of %d engines; select one by --model, --gpu, --engine, --tp or --precision, or give --all: %s", len(groups), listed(groups))
	}
	fits, err := f.fitted(groups)
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
	if _, err = io.WriteString(command.OutOrStdout(), text); err != nil {
		return err
	}
	if !slices.ContainsFunc(fits, func(one fitting) bool { return one.err == nil }) {
		return fmt.Errorf("no engine of %s could be fitted; the output says why", printable(path))
	}
	return nil
}

// check returns the validation errors of the flags.
func (f *fitFlags) check() error {
	var errs []error
	if f.tensorParallel < 0 {
		errs = append(errs, fmt.Errorf("tp %d is below zero; leave it out, or write 1 or more", f.tensorParallel))
	}
	switch fit.Unit(f.unit) {
	case fit.UnitByName, fit.Microseconds, fit.Milliseconds, fit.Seconds:
	default:
		errs = append(errs, fmt.Errorf("unit %q is unknown; it is ms, s or us", f.unit))
	}
	switch {
	case f.experts < 0 || f.expertsPerToken < 0 || f.expertsPerToken > f.experts:
		errs = append(errs, fmt.Errorf("experts %d and experts-per-token %d do not fit together; write those of the model's config.json, such as 256 and 8",
			f.experts, f.expertsPerToken))
	case f.experts > 1 && f.expertsPerToken == 0:
		errs = append(errs, fmt.Errorf("experts %d needs experts-per-token; write that of the model's config.json, such as 8", f.experts))
	}
	return errors.Join(errs...)
}

// sparsity returns that of a model: by the flags, else by its name; 0 if it is not known.
func (f *fitFlags) sparsity(model string) float64 {
	if f.experts > 0 {
		return float64(f.experts) / float64(max(1, f.expertsPerToken))
	}
	known, _ := fit.Sparsity(model)
	return known
}

// readTable reads a file. Its names are printed, so they lose their control characters.
func (f *fitFlags) readTable(command *cobra.Command, path string) (fit.Table, error) {
	from := command.InOrStdin()
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return fit.Table{}, unread(path, err)
		}
		defer file.Close()
		from = file
	}
	table, err := fit.ReadTable(from, fit.Unit(f.unit))
	if err != nil {
		return fit.Table{}, unread(path, err)
	}
	for i := range table.Groups {
		k := &table.Groups[i].Key
		k.Model, k.GPU, k.Engine, k.Precision = printable(k.Model), printable(k.GPU), printable(k.Engine), printable(k.Precision)
	}
	return table, nil
}

// unread returns the error of a file. Errors of the system have the path with control characters.
func unread(path string, err error) error {
	if system, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("reading the rows of %s: %w", printable(path), system.Err)
	}
	return fmt.Errorf("%s:\n%w", printable(path), err)
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
				*choice.of(&groups[i].Key) = printable(choice.flag)
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
func (f *fitFlags) fitted(groups []fit.Group) ([]fitting, error) {
	var fits []fitting
	var wrong []error
	for _, g := range groups {
		one := fitting{Key: g.Key, rows: g.Rows}
		if one.Result, one.err = fit.Fit(g.Rows, f.sparsity(g.Model)); one.err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", g.Key, one.err))
		}
		fits = append(fits, one)
	}
	return fits, errors.Join(wrong...)
}
