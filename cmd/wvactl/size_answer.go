package main

import (
	"errors"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/analyzer/queueing/textbook"
)

// estimate is the capacity of a replica by one method.
type estimate struct {
	Method string `json:"method"`
	// Rate is absent if the method has no answer, for the reason in Problem.
	Rate      *float64       `json:"ratePerSecond,omitempty"`
	LimitedBy queueing.Limit `json:"limitedBy,omitzero"`
	LeavesOut string         `json:"leavesOut"`
	Problem   string         `json:"problem,omitzero"`
}

// atRate is the latency at a rate.
type atRate struct {
	Rate     float64 `json:"ratePerSecond"`
	MissTTFT float64 `json:"missTTFTShare"`
	MissITL  float64 `json:"missITLShare"`
	Misses   float64 `json:"missEitherShare"`
	Allowed  float64 `json:"allowedShare"`
	Met      bool    `json:"met"`
	// Means are those of the birth-death queue; absent in overload, for the reason in Problem.
	Means   *queueMeans `json:"birthDeathMeans,omitempty"`
	Problem string      `json:"problem,omitzero"`
}

// queueMeans are means over requests, or over time.
type queueMeans struct {
	Wait        float64 `json:"waitSeconds"`
	WaitTail    float64 `json:"waitAtPercentileSeconds"`
	TTFT        float64 `json:"ttftSeconds"`
	ITL         float64 `json:"itlSeconds"`
	Running     float64 `json:"runningRequests"`
	Utilisation float64 `json:"batchUtilisationShare"`
}

// answers are those of the percentile method.
type answers struct {
	formula   queueing.Answer
	simulated *queueing.Answer
}

// counts returns the answer that the server would use: the formula's, or the simulation's if the
// formula is known to be far off.
func (a answers) counts() queueing.Answer {
	if a.formula.Doubtful && a.simulated != nil {
		return *a.simulated
	}
	return a.formula
}

// answers asks the formula, and a simulation if it is wanted or the formula is known to be far off.
func (s sizing) answers(simulate bool) (answers, error) {
	formula, err := s.sizer.MaxRate(s.Question)
	a := answers{formula: formula}
	if err != nil || !formula.Doubtful && !simulate {
		return a, err
	}
	simulated, err := s.sizer.Simulate(s.Question)
	a.simulated = &simulated
	return a, err
}

// atRate returns the latency at a rate. Shares are the formula's; if a simulation gave the answer,
// they are scaled to agree with it.
func (s sizing) atRate(rate float64, a answers) (*atRate, error) {
	scale := 1.0
	if counts := a.counts(); counts.Rate > 0 && a.formula.Rate > 0 {
		scale = a.formula.Rate / counts.Rate
	}
	v, err := s.sizer.Violation(s.Question, rate*scale)
	if err != nil {
		return nil, err
	}
	allowed := 1 - s.Objective.Percentile
	at := &atRate{Rate: rate, MissTTFT: v.TTFT, MissITL: v.ITL, Misses: v.Either, Allowed: allowed, Met: v.Either <= allowed}
	if at.Means, err = s.means(rate); err != nil {
		at.Problem = err.Error()
	}
	if errors.Is(err, textbook.ErrOverload) {
		at.Problem = "the rate is at or above that of a full batch, so the queue grows without end"
	}
	return at, nil
}

func (s sizing) means(rate float64) (*queueMeans, error) {
	service, queue, err := s.birthDeath()
	if err != nil {
		return nil, err
	}
	state, err := queue.At(rate)
	if err != nil {
		return nil, err
	}
	m := &queueMeans{
		Wait: state.Wait, WaitTail: state.WaitQuantile(s.Objective.Percentile), Running: state.InService, Utilisation: state.Utilisation(),
	}
	m.TTFT, m.ITL = service.Latency(queue, state)
	return m, nil
}

// birthDeath returns the queue in front of the replica, whose requests all have the mean lengths.
func (s sizing) birthDeath() (queueing.Service, textbook.Queue, error) {
	service, err := queueing.NewService(s.Replica, s.Replica.Request(s.Mix.MeanPrompt(), s.Mix.MeanOutput()))
	if err != nil {
		return service, textbook.Queue{}, err
	}
	queue, err := service.Queue(textbook.Unlimited)
	return service, queue, err
}
