package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

// sizeFlags are the flags of size. Zero is not given.
type sizeFlags struct {
	model, accelerator, precision string
	tensorParallel                int
	config, profile               string

	ttft, itl  time.Duration
	percentile float64

	promptTokens, outputTokens float64
	trace                      string
	dispersion, prefixHits     float64

	maxSequences, batchedTokens int
	kvTokens                    float64
	role                        string

	rate, arrivals float64
	simulate       bool
	output         string
}

func newSizeCommand() *cobra.Command {
	var f sizeFlags
	command := &cobra.Command{
		Use:   "size",
		Short: "Compute the capacity of one replica within an SLO",
		Long: `Compute the highest rate of requests at which a percentile of them meets the limits on TTFT and ITL, for one replica, as
the server computes it.

The engine has one of the shipped profiles, found by model, accelerator, precision and tensor parallelism as for a variant. --config
adds the profiles of a configuration file, and --profile gives the cost itself. The limits of the engine are those of the flags,
else of the profile, else vLLM's defaults.

Lengths are assumed around the given means (lognormal, the deviation as large as the mean), or measured: --trace reads them from
a CSV with the columns ContextTokens and GeneratedTokens. Prompts and outputs are assumed to be independent.

The dispersion is the variance of the number of arrivals over its mean, 1 for Poisson, in windows as long as the limit on TTFT. It is
that of the replica's arrivals; with --arrivals it is that of all arrivals, of which each replica gets an equal part, which is less
bursty.

The formula is known to be far off for some questions. For these, and with --simulate for all, a small simulation answers as well.
The answer is of a steady state, without headroom for growth, start-up or failures. An SLO that cannot be met is an answer and not
an error; in JSON it is answer.infeasible.`,
		Example: `  wvactl size --model meta-llama/Llama-3.1-8B-Instruct --accelerator H100 --ttft 1s --itl 30ms --prompt-tokens 1155 --output-tokens 211
  wvactl size --model Qwen/Qwen3-32B --accelerator H200 --ttft 2s --itl 60ms --percentile 0.99 --trace requests.csv --dispersion 3 --arrivals 40
  wvactl size --profile alpha=6.07,beta=0.034,gamma=0.0424,prefill=0.0134 --ttft 500ms --prompt-tokens 2000 --output-tokens 28 --rate 5 -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return f.run(command) },
	}
	f.define(command)
	return command
}

func (f *sizeFlags) define(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.model, "model", "", "the modelID of variants")
	flags.StringVar(&f.accelerator, "accelerator", "", "the accelerator of variants, such as H100")
	flags.StringVar(&f.precision, "precision", "", "precision of the weights; default: from the model's name, else 16 bits")
	flags.IntVar(&f.tensorParallel, "tensor-parallel", 1, "number of accelerators over which each layer is split")
	flags.StringVar(&f.config, "config", "", "configuration file whose profiles have precedence over the shipped ones")
	flags.StringVar(&f.profile, "profile", "", "cost of an iteration, as in a trigger: alpha=6.07,beta=0.034")

	flags.DurationVar(&f.ttft, "ttft", 0, "limit on the time to first token; default: none")
	flags.DurationVar(&f.itl, "itl", 0, "limit on the time between output tokens; default: none")
	flags.Float64Var(&f.percentile, "percentile", scaledobject.DefaultPercentile, "share of requests that must meet both")

	flags.Float64Var(&f.promptTokens, "prompt-tokens", 0, "mean length of prompts")
	flags.Float64Var(&f.outputTokens, "output-tokens", 0, "mean length of outputs")
	flags.StringVar(&f.trace, "trace", "", "CSV with the columns ContextTokens and GeneratedTokens: lengths as measured")
	flags.Float64Var(&f.dispersion, "dispersion", 1, "index of dispersion of the arrivals, 1 for Poisson")
	flags.Float64Var(&f.prefixHits, "prefix-hits", 0, "share of each prompt that is found in the prefix cache, from 0 to 1")

	flags.IntVar(&f.maxSequences, "max-sequences", 0, "the engine's limit of requests in a batch (max_num_seqs)")
	flags.IntVar(&f.batchedTokens, "batched-tokens", 0, "its limit of tokens in an iteration (max_num_batched_tokens)")
	flags.Float64Var(&f.kvTokens, "kv-tokens", 0, "KV cache size in tokens; default: the profile's, else no limit")
	flags.StringVar(&f.role, "role", string(fleet.RoleBoth), "part of the work: both, prefill or decode")

	flags.Float64Var(&f.rate, "rate", 0, "also compute the latency at this rate of requests per second")
	flags.Float64Var(&f.arrivals, "arrivals", 0, "also compute the number of replicas for this rate of requests per second")
	flags.BoolVar(&f.simulate, "simulate", false, "answer by a simulation as well")
	flags.StringVarP(&f.output, "output", "o", "text", "text or json")
}

func (f *sizeFlags) run(command *cobra.Command) error {
	s, err := f.sizing()
	if err != nil {
		return err
	}
	result, err := s.result()
	if err != nil {
		return err
	}
	text := result.text()
	if f.output == "json" {
		if text, err = result.json(); err != nil {
			return err
		}
	}
	_, err = io.WriteString(command.OutOrStdout(), text)
	return err
}

// check returns the errors of the flags by themselves.
func (f *sizeFlags) check() error {
	return errors.Join(f.checkChoices(), f.checkObjective(), f.checkLengths(), f.checkNumbers())
}

func (f *sizeFlags) checkChoices() error {
	var wrong []error
	if f.output != "text" && f.output != "json" {
		wrong = append(wrong, fmt.Errorf("output %q is unknown; it is text or json, and --output-tokens is the length of outputs", f.output))
	}
	switch fleet.Role(f.role) {
	case fleet.RoleBoth, fleet.RolePrefill, fleet.RoleDecode:
	default:
		wrong = append(wrong, fmt.Errorf("role %q is unknown; it is both, prefill or decode", f.role))
	}
	switch {
	case f.profile != "" && f.config != "":
		wrong = append(wrong, errors.New("profile and config are both set; keep one of the two"))
	case f.profile == "" && f.model == "":
		wrong = append(wrong, errors.New("no model; give --model, or the cost of an iteration as --profile"))
	}
	if f.profile == "" && f.accelerator == "" {
		wrong = append(wrong, errors.New("no accelerator; give --accelerator, or the cost of an iteration as --profile"))
	}
	return errors.Join(wrong...)
}

func (f *sizeFlags) checkObjective() error {
	var wrong []error
	for _, limit := range []struct {
		name  string
		value time.Duration
	}{{"ttft", f.ttft}, {"itl", f.itl}} {
		if limit.value < 0 {
			wrong = append(wrong, fmt.Errorf("%s %s is below zero; leave it out for no limit", limit.name, limit.value))
		}
	}
	o := f.objective()
	switch {
	case o.TTFT > 0 || o.ITL > 0 || len(wrong) > 0:
	case f.role == string(fleet.RoleDecode):
		wrong = append(wrong, errors.New("no limit that concerns decoding; give --itl"))
	case f.role == string(fleet.RolePrefill):
		wrong = append(wrong, errors.New("no limit that concerns prefill; give --ttft"))
	default:
		wrong = append(wrong, errors.New("no objective; give --ttft, --itl or both"))
	}
	if !(f.percentile > 0 && f.percentile < 1) {
		wrong = append(wrong, fmt.Errorf("percentile %v is not between 0 and 1; write 0.95 for 95 %%", f.percentile))
	}
	return errors.Join(wrong...)
}

func (f *sizeFlags) checkLengths() error {
	means := f.promptTokens != 0 || f.outputTokens != 0
	switch {
	case f.trace != "" && means:
		return errors.New("trace is set, and so is prompt-tokens or output-tokens; keep measured or assumed lengths")
	case f.trace != "":
		return nil
	}
	var wrong []error
	if !(f.promptTokens > 0) || math.IsInf(f.promptTokens, 1) {
		wrong = append(wrong, fmt.Errorf("prompt-tokens %v is no mean length; give one above zero, or --trace", f.promptTokens))
	}
	if !(f.outputTokens > 0) && (f.role != string(fleet.RolePrefill) || f.outputTokens != 0) || math.IsInf(f.outputTokens, 1) {
		wrong = append(wrong, fmt.Errorf("output-tokens %v is no mean length; give one above zero, or --trace", f.outputTokens))
	}
	return errors.Join(wrong...)
}

func (f *sizeFlags) checkNumbers() error {
	var wrong []error
	for _, number := range []struct {
		name          string
		value         float64
		least, most   float64
		whenItIsRight string
	}{
		{"tensor-parallel", float64(f.tensorParallel), 1, 4096, "a whole number from 1"},
		{"dispersion", f.dispersion, 0, math.MaxFloat64, "a number from 0; below 1 it counts as 1, and above 64 as 64"},
		{"prefix-hits", f.prefixHits, 0, 1, "a share from 0 to 1"},
		{"max-sequences", float64(f.maxSequences), 0, 1e6, "a whole number from 1 to 1000000, or leave it out"},
		{"batched-tokens", float64(f.batchedTokens), 0, 1e8, "a whole number from 1 to 100000000, or leave it out"},
		{"kv-tokens", f.kvTokens, 0, 1e12, "a number of tokens, or leave it out"},
		{"rate", f.rate, 0, 1e9, "a number of requests per second up to 1e9, or leave it out"},
		{"arrivals", f.arrivals, 0, 1e9, "a number of requests per second up to 1e9, or leave it out"},
	} {
		if !(number.value >= number.least && number.value <= number.most) {
			wrong = append(wrong, fmt.Errorf("%s %v is out of bounds; write %s", number.name, number.value, number.whenItIsRight))
		}
	}
	return errors.Join(wrong...)
}
