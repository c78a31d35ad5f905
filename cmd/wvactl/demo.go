package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/wva-project/wva/demo"
)

// The addresses of the scaler, for KEDA and for operators.
const (
	defaultAddress          = "127.0.0.1:9090"
	defaultOperatorsAddress = "127.0.0.1:9091"
)

// demoFlags are the flags of the demo.
type demoFlags struct {
	options       demo.Options
	trace, output string
	report        string
	faults, pools []string
	verbose       bool
}

func newDemoCommand() *cobra.Command {
	var f demoFlags
	command := &cobra.Command{
		Use:   "demo",
		Short: "Run the whole product against a simulated fleet",
		Long: `Run the whole product in one process, with nothing to install: the real collector, planner and gRPC server between a simulated
fleet of engines, which an in-process Prometheus scrapes, and a stand-in for KEDA and the HPA, which calls the server and
scales the fleet.

Without a trace, a generated load comes to two models: one on two variants of different speed and price, and a small one
that is scaled to zero and activated again. The same seed gives the same summary, byte for byte.

Faults are injected, as TYPE@BEGIN+DURATION in virtual time:
  prometheus@20m+5m   Prometheus is down: it scrapes no target and answers no query
  scrape@20m+5m       Prometheus answers, but its scrapes fail
  wva@20m+1m          the scaler is killed, and restarts without its state

Pools put accelerators on nodes, as ACCELERATOR=NODESxGPUS; an accelerator type without a pool has no limit. A replica is then
scheduled to one node, and is Pending while no node has enough free GPUs, under the baselines as under WVA. With only two of
the cheaper L40S, which both models share, the plan adds an H100 for a while:
  L40S=2x1            two nodes with one L40S each
  H100=1x8            one node with eight H100

Ctrl-C ends the run with the summary so far, and exit code 130 (143 after SIGTERM); a second one ends it at once.`,
		Example: `  wvactl demo
  wvactl demo --speed 0 --fault prometheus@20m+5m
  wvactl demo --speed 0 --pools L40S=2x1,H100=1x8
  wvactl demo --speed 0 --report report.html
  wvactl demo --trace requests.csv --scale 4 --speed 0 --output json
  wvactl demo --trace requests.csv --scale 4 --speed 0 --ttft 1s --itl 30ms --percentile 0.95`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return f.run(command) },
	}
	flags := command.Flags()
	flags.StringVar(&f.trace, "trace", "", "replay the requests of a CSV with the columns TIMESTAMP, ContextTokens, GeneratedTokens")
	flags.Float64Var(&f.options.Scale, "scale", 1, "multiply the rate of the trace by superposing shifted copies")
	flags.DurationVar(&f.options.Objective.TTFT, "ttft", 0, "limit on the time to first token (TTFT), instead of that of the manifests")
	flags.DurationVar(&f.options.Objective.ITL, "itl", 0, "limit on the inter-token latency (ITL), instead of that of the manifests")
	flags.Float64Var(&f.options.Objective.Percentile, "percentile", 0, "share of requests that must meet both, such as 0.95")
	flags.BoolVar(&f.options.SaturationAlone, "saturation-alone", false, "decide without profiles and percentiles, for comparison")
	flags.Uint64Var(&f.options.Seed, "seed", 1, "randomness of load, start-up times and engines, above 0")
	flags.Float64Var(&f.options.Speed, "speed", 30, "virtual seconds per second; 0 is as fast as possible")
	flags.StringArrayVar(&f.faults, "fault", nil, "inject a fault, such as prometheus@20m+5m (repeatable)")
	flags.StringSliceVar(&f.pools, "pools", nil, "put accelerators on nodes, such as L40S=2x1,H100=1x8 (repeatable)")
	flags.StringVarP(&f.output, "output", "o", "table", "table, or json: a line per cycle, then a summary")
	flags.StringVar(&f.report, "report", "", "write load, replicas, latency, cost and reasons to this file, as one HTML page")
	flags.StringVar(&f.options.Address, "grpc-address", defaultAddress, "address of the gRPC server for KEDA")
	flags.StringVar(&f.options.OperatorsAddress, "operators-address", defaultOperatorsAddress, "address of the gRPC server for operators")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "write the product's log to standard error")
	return command
}

func (f *demoFlags) run(command *cobra.Command) error {
	if command.Flags().Changed("pools") && len(f.pools) == 0 {
		f.pools = []string{""} // an empty list is an invalid pool
	}
	if err := errors.Join(f.parse(command), checkOutput(f.output, "table", "json")); err != nil {
		return usage(err)
	}
	f.options.JSON = f.output == "json"
	if f.trace != "" {
		file, err := os.Open(f.trace)
		if err != nil {
			return fmt.Errorf("reading the trace: %w", err)
		}
		defer file.Close()
		f.options.Trace, f.options.TraceName = file, f.trace
	}
	var page bytes.Buffer
	if f.report != "" {
		if err := checkFile("report", "report.html", f.report, f.trace); err != nil {
			return err
		}
		f.options.Report, f.options.Command = &page, commandLine(command)
	}
	if f.verbose {
		f.options.Logger = slog.New(slog.NewTextHandler(command.ErrOrStderr(), nil))
	}
	f.options.Address = freeAddress(command, "grpc-address", f.options.Address)
	f.options.OperatorsAddress = freeAddress(command, "operators-address", f.options.OperatorsAddress)
	f.options.Output = command.OutOrStdout()
	_, err := demo.Run(command.Context(), f.options)
	if _, wrong := errors.AsType[demo.OptionsError](err); wrong {
		return usage(err)
	}
	if page.Len() > 0 { // also of a run that was interrupted
		err = errors.Join(err, writeFile("report", f.report, page.Bytes()))
	}
	return err
}

// parse reads the flags that have a form of their own, and rejects zeros, which are defaults in the
// options. The error joins all that are invalid.
func (f *demoFlags) parse(command *cobra.Command) error {
	var wrong []error
	for _, flag := range []struct {
		name   string
		isZero bool
	}{
		{"scale", f.options.Scale == 0}, {"seed", f.options.Seed == 0},
		{"ttft", f.options.Objective.TTFT == 0}, {"itl", f.options.Objective.ITL == 0}, {"percentile", f.options.Objective.Percentile == 0},
	} {
		if flag.isZero && command.Flags().Changed(flag.name) {
			wrong = append(wrong, fmt.Errorf("%s 0: set a value above 0", flag.name))
		}
	}
	if command.Flags().Changed("report") && f.report == "" {
		wrong = append(wrong, errors.New("the report has no file; name one, such as report.html"))
	}
	for _, text := range f.faults {
		fault, err := demo.ParseFault(text)
		wrong = append(wrong, err)
		f.options.Faults = append(f.options.Faults, fault)
	}
	for _, text := range f.pools {
		pool, err := demo.ParsePool(text)
		wrong = append(wrong, err)
		f.options.Pools = append(f.options.Pools, pool)
	}
	return errors.Join(wrong...)
}

// freeAddress returns the address of a flag. If the flag is not set and another process has its
// default, the address is a free one.
func freeAddress(command *cobra.Command, flag, address string) string {
	if command.Flags().Changed(flag) {
		return address
	}
	listener, err := (&net.ListenConfig{}).Listen(command.Context(), "tcp", address)
	if err != nil {
		fmt.Fprintf(command.ErrOrStderr(), "%s is in use, so the gRPC server listens on a free port; set --%s to choose one\n", address, flag)
		return "127.0.0.1:0"
	}
	_ = listener.Close() // no connection was accepted
	return address
}
