package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/wva-project/wva/app"
	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/record"
	"github.com/wva-project/wva/simulation"
)

// recordFlags are the flags of record.
type recordFlags struct {
	options     record.Options
	prometheus  config.Prometheus
	since, step string
	output      string
}

func newRecordCommand() *cobra.Command {
	var f recordFlags
	command := &cobra.Command{
		Use:   "record",
		Short: "Write the past requests of a model, from Prometheus, as a trace",
		Long: `Write the past requests of a model as a trace, which simulate and demo replay: what would another policy have cost me?

It reads the metrics of the engines from Prometheus, by range queries of at most 1,000 points, one at a time. In each step the
trace has as many requests as first tokens were counted, with the growth of the engines' queues. Lengths are drawn from the
histograms of the hour, scaled to the means of the step; arrivals within a step are as bursty as the halves of the steps of the
hour show. No text and no client of any request is in it.

A step without samples is unknown: the model was scaled to zero, or its engines were not scraped. It gets no requests, and
the summary on standard error tells how many there are. Requests that wait at a gateway count when an engine gets them. Prefix
cache hits are not recorded.`,
		Example: `  wvactl record --prometheus-url http://localhost:9090 --since 7d -o week.csv
  wvactl record --prometheus-url https://thanos.example.com --bearer-token-file token --model llama --namespace chat --since 1d -o day.csv`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return f.run(command) },
	}
	f.addFlags(command)
	return command
}

func (f *recordFlags) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.prometheus.URL, "prometheus-url", "", "address of Prometheus' HTTP API, such as http://localhost:9090")
	flags.StringVar(&f.prometheus.BearerTokenFile, "bearer-token-file", "", "file with a token for Prometheus")
	flags.StringVar(&f.prometheus.CAFile, "ca-file", "", "authorities of Prometheus' certificate, in PEM")
	flags.StringVar(&f.options.Model.Name, "model", "", "the model's name in the engines' metrics; needed if there are several")
	flags.StringVar(&f.options.Model.Namespace, "namespace", "", "the model's namespace; needed if several have the model")
	flags.StringVar(&f.since, "since", "7d", "length of the period until now, such as 6h or 7d")
	flags.StringVar(&f.step, "step", "1m", "length of a step, at least the scrape interval")
	flags.IntVar(&f.options.MaxRequests, "max-requests", 5_000_000, "the largest number of requests to write")
	flags.Uint64Var(&f.options.Seed, "seed", 1, "randomness of arrivals and lengths")
	flags.StringVar(&f.options.Matchers, "matchers", "", `label matchers that every series must meet, such as cluster="eu-1"`)
	flags.StringVar(&f.options.NamespaceLabel, "namespace-label", "namespace", "label of the namespace of engine metrics")
	flags.StringVar(&f.options.PodLabel, "pod-label", "pod", "label of the pod of engine metrics")
	flags.StringVar(&f.options.ModelLabel, "model-label", "model_name", "label of the model of engine metrics")
	flags.StringVarP(&f.output, "output", "o", "", "the file to write, or - for standard output")
}

func (f *recordFlags) run(command *cobra.Command) error {
	if err := f.parse(); err != nil {
		return usage(err)
	}
	if f.output != "-" {
		if err := checkFile("trace", "trace.csv", f.output); err != nil {
			return err
		}
	}
	transport, err := app.PrometheusTransport(f.prometheus)
	if err != nil {
		return usage(err)
	}
	if f.options.API, err = record.Connect(f.prometheus.URL, transport); err != nil {
		return usage(err)
	}
	f.options.End = time.Now()
	progress := newProgress(command.ErrOrStderr(), "queries")
	f.options.Progress = progress.show
	recording, err := record.Read(command.Context(), f.options)
	progress.end()
	if err != nil {
		return err
	}
	return f.write(command, recording)
}

// parse reads the flags that have a form of their own, and those that are needed.
func (f *recordFlags) parse() error {
	var wrong []error
	if f.prometheus.URL == "" {
		wrong = append(wrong, errors.New("no Prometheus; give its address by --prometheus-url"))
	}
	if f.output == "" {
		wrong = append(wrong, errors.New("no file; name one by --output, or - for standard output"))
	}
	for _, flag := range []struct {
		name, text string
		value      *time.Duration
	}{{"since", f.since, &f.options.Since}, {"step", f.step, &f.options.Step}} {
		parsed, err := model.ParseDuration(flag.text)
		if err != nil || parsed <= 0 {
			wrong = append(wrong, fmt.Errorf("%s %q: write it as 1m, 6h or 7d", flag.name, flag.text))
		}
		*flag.value = time.Duration(parsed)
	}
	return errors.Join(wrong...)
}

func (f *recordFlags) write(command *cobra.Command, recording *record.Recording) error {
	requests, err := recording.Trace()
	if err != nil {
		return err
	}
	var file bytes.Buffer
	if err := simulation.WriteTrace(&file, recording.Begin, requests); err != nil {
		return err
	}
	if f.output == "-" {
		_, err = file.WriteTo(command.OutOrStdout())
	} else {
		err = writeFile("trace", f.output, file.Bytes())
	}
	if err != nil {
		return err
	}
	summarizeRecording(command.ErrOrStderr(), recording, f.options.Step)
	return nil
}

// summarizeRecording writes the size of a recording, and the parts of it that are missing.
func summarizeRecording(w io.Writer, r *record.Recording, step time.Duration) {
	span := time.Duration(r.All) * step
	fmt.Fprintf(w, "%s: %d requests in %s from %s\n", r.Model(), r.Requests, model.Duration(span), r.Begin.UTC().Format(time.RFC3339))
	if r.Unknown > 0 {
		fmt.Fprintf(w, "unknown: %d of %d steps have no samples, so no requests (scaled to zero, or not scraped); the longest time is %s from %s\n",
			r.Unknown, r.All, model.Duration(r.Longest), r.LongestAt.UTC().Format(time.RFC3339))
	}
	if !r.Histograms {
		fmt.Fprintln(w, "the engines have no histograms of lengths: they are drawn around the means, with a 99th percentile of three times those")
	}
}
