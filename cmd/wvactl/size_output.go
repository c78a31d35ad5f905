package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// sizeResult is all that size prints.
type sizeResult struct {
	Profile   profileUsed   `json:"profile"`
	Engine    engineUsed    `json:"engine"`
	Requests  requestsUsed  `json:"requests"`
	Objective objectiveUsed `json:"objective"`
	Answer    answerGiven   `json:"answer"`
	// Alternatives are changes of one flag with which the objective is feasible.
	Alternatives []alternative   `json:"alternatives,omitempty"`
	Comparison   []estimate      `json:"comparison"`
	AtRate       *atRate         `json:"atRate,omitempty"`
	Needed       *replicasNeeded `json:"replicasNeeded,omitempty"`
}

type profileUsed struct {
	Model          string            `json:"model,omitzero"`
	Accelerator    fleet.Accelerator `json:"accelerator,omitzero"`
	Precision      string            `json:"precision,omitzero"`
	TensorParallel int               `json:"tensorParallel"`
	// Cost is written as in a trigger, in milliseconds.
	Cost   string `json:"costMilliseconds"`
	Found  string `json:"found"`
	Origin string `json:"origin,omitzero"`
}

type engineUsed struct {
	Role          string       `json:"role"`
	MaxSequences  int          `json:"maxSequences"`
	BatchedTokens int          `json:"batchedTokens"`
	KVTokens      float64      `json:"kvTokens,omitzero"`
	PrefixHits    float64      `json:"prefixHitsShare"`
	Sources       limitSources `json:"sources"`
}

type requestsUsed struct {
	PromptTokens float64 `json:"meanPromptTokens"`
	OutputTokens float64 `json:"meanOutputTokens"`
	Lengths      string  `json:"lengths"`
	Dispersion   float64 `json:"dispersion"`
}

type objectiveUsed struct {
	TTFT       float64 `json:"ttftSeconds,omitzero"`
	ITL        float64 `json:"itlSeconds,omitzero"`
	Percentile float64 `json:"percentileShare"`
}

type answerGiven struct {
	Rate         float64        `json:"ratePerSecond"`
	OutputTokens float64        `json:"outputTokensPerSecond"`
	LimitedBy    queueing.Limit `json:"limitedBy"`
	Infeasible   bool           `json:"infeasible"`
	Remedy       string         `json:"remedy,omitzero"`
	// MissesIdle is the share of requests that miss the objective without load.
	MissesIdle float64 `json:"missWithoutLoadShare"`
	MeanRate   float64 `json:"meanRatePerSecond"`
	Doubtful   bool    `json:"formulaDoubtful"`
	Simulated  bool    `json:"simulated"`
}

// result answers everything that was asked.
func (s sizing) result() (sizeResult, error) {
	a, err := s.answers(s.flags.simulate)
	if err != nil {
		return sizeResult{}, err
	}
	r := s.asked()
	r.Comparison = s.comparison(a)
	given := a.counts()
	if given.Infeasible {
		r.Alternatives = s.alternatives()
	}
	r.Answer = answerGiven{
		Rate: given.Rate, OutputTokens: given.Rate * s.Mix.MeanOutput(), LimitedBy: given.LimitedBy, MeanRate: given.MeanRate,
		Infeasible: given.Infeasible, Remedy: given.Remedy, Doubtful: a.formula.Doubtful, Simulated: given.Simulated,
	}
	idle, err := s.sizer.Violation(s.Question, 0)
	r.Answer.MissesIdle = idle.Either
	if rate := s.flags.rate; rate > 0 {
		var rateErr error
		r.AtRate, rateErr = s.atRate(rate, a)
		err = errors.Join(err, rateErr)
	}
	if arrivals := s.flags.arrivals; arrivals > 0 {
		var replicasErr error
		r.Needed, replicasErr = s.replicas(arrivals)
		err = errors.Join(err, replicasErr)
	}
	return r, err
}

// asked returns the question.
func (s sizing) asked() sizeResult {
	p := s.profile
	return sizeResult{
		Profile: profileUsed{
			Model: cmp.Or(s.flags.model, p.Model), Accelerator: p.Accelerator, Precision: p.Precision, TensorParallel: p.TensorParallel,
			Cost: p.Cost.String(), Found: p.source, Origin: p.Origin,
		},
		Engine: engineUsed{
			Role: s.flags.role, MaxSequences: s.Replica.MaxSequences, BatchedTokens: s.Replica.BatchedTokens,
			KVTokens: s.Replica.KVTokens, PrefixHits: s.Replica.PrefixHits, Sources: s.limits,
		},
		Requests: requestsUsed{
			PromptTokens: s.Mix.MeanPrompt(), OutputTokens: s.Mix.MeanOutput(), Lengths: s.lengths, Dispersion: s.Dispersion,
		},
		Objective: objectiveUsed(s.Objective),
	}
}

func (r sizeResult) json() (string, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", fmt.Errorf("writing the answer: %w", err)
	}
	return string(text) + "\n", nil
}

func (r sizeResult) text() string {
	var b strings.Builder
	r.writeAsked(&b)
	b.WriteString("\n" + r.Answer.text() + "\n" + alternativesText(r.Answer.Infeasible, r.Alternatives) + "\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "METHOD\tREQUESTS/S\tLIMITED BY\tLEAVES OUT")
	for _, e := range r.Comparison {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", e.Method, e.rateText(), cmp.Or(string(e.LimitedBy), "-"), cmp.Or(e.Problem, e.LeavesOut))
	}
	_ = w.Flush() // into memory
	if r.AtRate != nil {
		b.WriteString("\n" + r.AtRate.text())
	}
	if r.Needed != nil {
		b.WriteString("\n" + r.Needed.text())
	}
	return b.String()
}

func (r sizeResult) writeAsked(b *strings.Builder) {
	p, e := r.Profile, r.Engine
	name := cmp.Or(p.Model, "an engine")
	if p.Accelerator != "" {
		name += " on " + string(p.Accelerator)
	}
	if p.Precision != "" {
		name += ", " + p.Precision
	}
	origin := p.Found
	if p.Origin != "" {
		origin += ": " + p.Origin
	}
	kv := e.Sources.KVTokens
	if e.KVTokens > 0 {
		kv = fmt.Sprintf("%s tokens (%s)", short(e.KVTokens), kv)
	}
	fmt.Fprintf(b, "%s, TP %d\n", name, p.TensorParallel)
	fmt.Fprintf(b, "  profile    %s\n", p.Cost)
	fmt.Fprintf(b, "  origin     %s\n", origin)
	fmt.Fprintf(b, "  engine     %s; %d sequences (%s), %d tokens an iteration (%s), KV cache: %s\n", roleText(e.Role),
		e.MaxSequences, e.Sources.MaxSequences, e.BatchedTokens, e.Sources.BatchedTokens, kv)
	fmt.Fprintf(b, "  requests   %s prompt and %s output tokens on average, lengths %s; prefix hits %s, dispersion %s\n",
		short(r.Requests.PromptTokens), short(r.Requests.OutputTokens), r.Requests.Lengths, share(e.PrefixHits), short(r.Requests.Dispersion))
	fmt.Fprintf(b, "  objective  %s\n", r.Objective.text())
}

func roleText(role string) string {
	switch fleet.Role(role) {
	case fleet.RolePrefill:
		return "prefill alone"
	case fleet.RoleDecode:
		return "decode alone"
	default:
		return "prefill and decode"
	}
}

func (o objectiveUsed) text() string {
	var limits []string
	if o.TTFT > 0 {
		limits = append(limits, "TTFT within "+inWords(o.TTFT))
	}
	if o.ITL > 0 {
		limits = append(limits, "ITL within "+inWords(o.ITL))
	}
	return fmt.Sprintf("%s of requests have %s", share(o.Percentile), strings.Join(limits, " and "))
}

func (a answerGiven) text() string {
	if a.Infeasible {
		return fmt.Sprintf("INFEASIBLE: capacity %s requests/s within the objective, less than a tenth of the %s requests/s by means; %s of requests miss it without load.\nLimited by %s. Remedy: %s.",
			short(a.Rate), short(a.MeanRate), percent(a.MissesIdle), a.LimitedBy, a.Remedy)
	}
	by := "."
	switch {
	case a.Simulated:
		by = ", by simulation: the formula is known to be far off here."
	case a.Doubtful:
		by = ", by a formula that is known to be far off here."
	}
	return fmt.Sprintf("Capacity of one replica: %s requests/s (%s output tokens/s) within the objective%s\nLimited by %s.", short(a.Rate), short(a.OutputTokens), by, a.LimitedBy)
}

func (e estimate) rateText() string {
	if e.Rate == nil {
		return "-"
	}
	return short(*e.Rate)
}

func (at *atRate) text() string {
	var b strings.Builder
	verdict := "the objective is met"
	if !at.Met {
		verdict = "the objective is missed"
	}
	fmt.Fprintf(&b, "At %s requests/s %s: %s of requests miss TTFT, %s ITL, %s either, of which %s may.\n",
		short(at.Rate), verdict, percent(at.MissTTFT), percent(at.MissITL), percent(at.Misses), share(at.Allowed))
	if m := at.Means; m != nil {
		fmt.Fprintf(&b, "By the birth-death queue: %s requests in the batch on average (%s of its places), wait %s, TTFT %s, ITL %s; at the percentile, wait %s.\n",
			short(m.Running), percent(m.Utilisation), inWords(m.Wait), inWords(m.TTFT), inWords(m.ITL), inWords(m.WaitTail))
		return b.String()
	}
	fmt.Fprintf(&b, "By the birth-death queue: %s.\n", at.Problem)
	return b.String()
}

func (n *replicasNeeded) text() string {
	if n.Replicas == 0 {
		return fmt.Sprintf("No number of replicas can serve %s requests/s within the objective.\n", short(n.Arrivals))
	}
	replicas := fmt.Sprintf("%d replicas", n.Replicas)
	if n.Replicas == 1 {
		replicas = "1 replica"
	}
	return fmt.Sprintf("%s requests/s need %s, each at %s requests/s (dispersion %s), %s of its capacity. There is no headroom for growth, start-up or failures.\n",
		short(n.Arrivals), replicas, short(n.Each), short(n.Dispersion), percent(n.Share))
}

// inWords returns seconds with a unit, in three digits.
func inWords(seconds float64) string {
	switch {
	case seconds >= 1:
		return short(seconds) + " s"
	case seconds >= 1e-3:
		return short(seconds*1e3) + " ms"
	case seconds >= 1e-6:
		return short(seconds*1e6) + " µs"
	}
	return "0 s"
}

// share is a percentage without trailing zeros: 95 %, 99.9 %.
func share(x float64) string { return decimal(fiveDigits(100*x)) + " %" }

// fiveDigits rounds to five digits after the point.
func fiveDigits(x float64) float64 { return math.Round(x*1e5) / 1e5 }
