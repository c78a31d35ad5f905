package main

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wva-project/wva/demo"
	"github.com/wva-project/wva/evaluation"
)

// simulateFlags are the flags of the simulation.
type simulateFlags struct {
	traces, loads []string
	policies      []string
	knobs         []string
	sweep         bool
	seeds, jobs   int
	rateScale     float64
	fleet         string
	pools         []string
	setup         evaluation.SetupOptions
	percentile    float64
	output        string
	report        string
}

// list is the value of a flag that prints its other values.
const list = "list"

func newSimulateCommand() *cobra.Command {
	var f simulateFlags
	command := &cobra.Command{
		Use:   "simulate",
		Short: "Compare WVA with other policies on a trace or a load, on a simulated fleet",
		Long: `Compare policies that choose numbers of replicas on the same requests, the same simulated fleet and the same seeds. WVA runs as in
production: its collector, planner and answers, on an in-process Prometheus, with KEDA and an HPA. The others are baselines from
their published rules, each with its published default or, with --sweep, with every value of its main knob. A baseline for one
workload runs on each variant alone.

The first table has a row for each policy and knob: the share of requests within the objective (lost and unfinished ones are not),
the lowest share of a minute's arrivals, the price of all replicas while Pending, starting, serving and draining by hour of load,
and the number of changes of direction. The second table has the cost of each policy at equal attainment, where its knob is the best
one that hindsight finds. With --sweep its last row estimates the least cost that is possible if all requests are known in advance.

Policies, loads and fleets are printed by --policy list, --load list and --fleet list. A load takes parameters after a colon, such
as spike:rate=20,factor=4, and llm-d-episode brings its own fleet, objective and start-up time.

Ctrl-C ends the simulation with the tables of the runs that are done, and exit code 130 (143 after SIGTERM).`,
		Example: `  wvactl simulate --load spike --policy wva,static,hpa-rate --sweep --seeds 3
  wvactl simulate --load spike --sweep --report report.html
  wvactl simulate --trace requests.csv --rate-scale 4 --ttft 3s --itl 100ms --percentile 95 --sweep
  wvactl simulate --trace requests.csv --fleet manifests.yaml --startup 120s -o csv
  wvactl simulate --load llm-d-episode --seeds 10
  wvactl simulate --load step --policy hpa-queue --knob hpa-queue=1,3`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return f.run(command) },
	}
	flags := command.Flags()
	flags.StringArrayVar(&f.traces, "trace", nil, "replay the requests of a CSV with the columns TIMESTAMP, ContextTokens, GeneratedTokens (repeatable)")
	flags.StringArrayVar(&f.loads, "load", nil, "generate a named load, such as step or step:low=1,high=9 (repeatable); list prints them")
	flags.StringSliceVar(&f.policies, "policy", []string{"wva", "static", "hpa-queue", "hpa-inflight", "hpa-rate"}, "policies to compare; list prints them")
	flags.StringArrayVar(&f.knobs, "knob", nil, "values of a policy's knob instead of its default, such as hpa-queue=2,5 (repeatable)")
	flags.BoolVar(&f.sweep, "sweep", false, "run every value of the knobs, for the cost at equal attainment")
	flags.IntVar(&f.seeds, "seeds", 1, "number of seeds of load, start-up times and engines")
	flags.IntVar(&f.jobs, "jobs", runtime.GOMAXPROCS(0), "number of runs at the same time; it changes no result")
	flags.Float64Var(&f.rateScale, "rate-scale", 1, "multiply the rate of the traces by superposing shifted copies")
	flags.StringVar(&f.fleet, "fleet", "", "file of ScaledObjects, or an embedded fleet (default that of the load, or chat); list prints them")
	flags.StringSliceVar(&f.pools, "nodes", nil, "put accelerators on nodes, such as L40S=2x1,H100=1x8 (default unlimited)")
	flags.DurationVar(&f.setup.Objective.TTFT, "ttft", 0, "limit on the time to first token (TTFT), instead of that of the load or the manifests")
	flags.DurationVar(&f.setup.Objective.ITL, "itl", 0, "limit on the inter-token latency (ITL), instead of that of the load or the manifests")
	flags.Float64Var(&f.percentile, "percentile", 0, "share of requests that must meet both, such as 95 or 0.95")
	flags.DurationVar(&f.setup.Startup, "startup", 0, "mean start-up time of a replica (default that of the load, or 60s)")
	flags.DurationVar(&f.setup.WarmUp, "warm-up", 10*time.Minute, "run this long before the load, with its first requests in reverse order; nothing of it is measured")
	flags.StringVarP(&f.output, "output", "o", "table", "table, json, or csv: a line for each run")
	flags.StringVar(&f.report, "report", "", "write curves of cost, replicas, worst minutes and tables to this file, as one HTML page")
	return command
}

func (f *simulateFlags) run(command *cobra.Command) error {
	if text := f.listed(); text != "" {
		_, err := fmt.Fprint(command.OutOrStdout(), text)
		return err
	}
	options, err := f.options(command)
	if err := usage(errors.Join(err, checkOutput(f.output, "table", "json", "csv"))); err != nil {
		return err
	}
	if command.Flags().Changed("report") {
		if err := checkFile("report", "report.html", f.report, append(slices.Clone(f.traces), f.fleet)...); err != nil {
			return err
		}
	}
	if options.Entries, err = f.entries(); err != nil {
		return err
	}
	// The live memory is small, and half of the time would go into collecting it.
	defer debug.SetGCPercent(debug.SetGCPercent(200))
	progress := newProgress(command.ErrOrStderr(), "runs")
	options.Progress = progress.show
	outcomes, err := evaluation.Sweep(command.Context(), options)
	progress.end()
	interrupted := command.Context().Err() != nil
	if err != nil && !interrupted {
		return err
	}
	comparison := evaluation.Compare(options, outcomes, interrupted)
	if f.sweep && !interrupted {
		bounds, err := evaluation.Bounds(command.Context(), options, comparison.Points)
		if err != nil {
			return err
		}
		comparison.AddBounds(bounds)
	}
	if writeErr := errors.Join(f.write(command, comparison), f.writeReport(command, comparison, options)); writeErr != nil {
		return writeErr
	}
	if interrupted {
		return fmt.Errorf("ended after %d runs: %w", len(outcomes), err)
	}
	return nil
}

func (f *simulateFlags) write(command *cobra.Command, c evaluation.Comparison) error {
	switch f.output {
	case "json":
		return c.WriteJSON(command.OutOrStdout())
	case "csv":
		return c.WriteCSV(command.OutOrStdout())
	default:
		return c.WriteTable(command.OutOrStdout())
	}
}

// writeReport writes the report, if there is to be one.
func (f *simulateFlags) writeReport(command *cobra.Command, c evaluation.Comparison, o evaluation.SweepOptions) error {
	if f.report == "" {
		return nil
	}
	var page bytes.Buffer
	if err := c.WriteReport(&page, o, commandLine(command)); err != nil {
		return err
	}
	return writeFile("report", f.report, page.Bytes())
}

// options reads the flags that need no file. The error joins all that are invalid.
func (f *simulateFlags) options(command *cobra.Command) (evaluation.SweepOptions, error) {
	o := evaluation.SweepOptions{Sweep: f.sweep, Seeds: f.seeds, Jobs: f.jobs, Knobs: map[string][]float64{}}
	var wrong []error
	if len(f.traces)+len(f.loads) == 0 {
		wrong = append(wrong, errors.New("no requests; add --trace FILE or --load NAME, of which --load list prints the names"))
	}
	for _, flag := range []struct {
		name  string
		value float64
	}{
		{"seeds", float64(f.seeds)}, {"jobs", float64(f.jobs)}, {"rate-scale", f.rateScale}, {"percentile", f.percentile},
		{"ttft", f.setup.Objective.TTFT.Seconds()}, {"itl", f.setup.Objective.ITL.Seconds()}, {"startup", f.setup.Startup.Seconds()},
	} {
		if !(flag.value > 0) && command.Flags().Changed(flag.name) {
			wrong = append(wrong, fmt.Errorf("%s %s: set a value above 0", flag.name, command.Flag(flag.name).Value))
		}
	}
	f.setup.Objective.Percentile = f.percentile
	if f.percentile > 1 {
		f.setup.Objective.Percentile /= 100
	}
	if f.percentile == 1 || f.percentile >= 100 {
		wrong = append(wrong, fmt.Errorf("percentile %g: set a share or a percentage, such as 0.95 or 95", f.percentile))
	}
	if f.setup.WarmUp < 0 {
		wrong = append(wrong, fmt.Errorf("warm-up %v: set 0 or more", f.setup.WarmUp))
	}
	if f.rateScale != 1 && len(f.traces) == 0 {
		wrong = append(wrong, errors.New("rate-scale: there is no trace to scale; add --trace FILE, or give the load another rate"))
	}
	for _, text := range f.pools {
		pool, err := demo.ParsePool(text)
		wrong = append(wrong, err)
		f.setup.Nodes = append(f.setup.Nodes, pool.NodeSpecs()...)
	}
	for _, name := range f.policies {
		policy, err := evaluation.PolicyOf(name)
		wrong = append(wrong, err)
		if slices.ContainsFunc(o.Policies, func(p evaluation.Policy) bool { return p.Name == name }) {
			wrong = append(wrong, fmt.Errorf("policy %s is given twice", name))
		}
		o.Policies = append(o.Policies, policy)
	}
	for _, text := range f.knobs {
		wrong = append(wrong, addKnob(o, text))
	}
	return o, errors.Join(wrong...)
}

// addKnob adds the values of a text such as "hpa-queue=2,5".
func addKnob(o evaluation.SweepOptions, text string) error {
	name, values, _ := strings.Cut(text, "=")
	at := slices.IndexFunc(o.Policies, func(p evaluation.Policy) bool { return p.Name == name })
	switch {
	case at < 0:
		return fmt.Errorf("knob %q: policy %q is not run; add it to --policy", text, name)
	case o.Policies[at].Knob.Name == "":
		return fmt.Errorf("knob %q: policy %s has no knob; leave it out", text, name)
	}
	for part := range strings.SplitSeq(values, ",") {
		value, err := strconv.ParseFloat(part, 64)
		if err != nil || !(value > 0) || value > 1e9 {
			return fmt.Errorf("knob %q: %q is not a number above 0; write it as %s=2,5", text, part, name)
		}
		o.Knobs[name] = append(o.Knobs[name], value)
	}
	return nil
}

// listed returns the names of the first flag that asks for them.
func (f *simulateFlags) listed() string {
	var text strings.Builder
	switch {
	case slices.Contains(f.loads, list):
		for _, l := range evaluation.NamedLoads() {
			fmt.Fprintf(&text, "%-20s %s (%s)\n", l.Name, l.Summary, l.ParameterText())
		}
	case slices.Contains(f.policies, list):
		for _, p := range evaluation.Policies() {
			fmt.Fprintf(&text, "%-20s %s\n", p.Name, p.Summary)
		}
	case f.fleet == list:
		for _, fleet := range evaluation.Fleets() {
			fmt.Fprintf(&text, "%-20s %s\n", fleet.Name, fleet.Summary)
		}
	}
	return text.String()
}
