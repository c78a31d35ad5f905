package main

import (
	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/analyzer/queueing/textbook"
	"github.com/wva-project/wva/fleet"
)

// The effects that methods leave out.
const (
	formulaLeavesOut    = "ties between a request's prompt and its output; preemption"
	simulationLeavesOut = "preemption, and other orders than first come, first served"
	meansLeaveOut       = "bursts, queues and the spread of lengths: many requests are slower than the mean"
	birthDeathLeavesOut = "bursts, the spread of lengths, and that one prompt stalls others; limits hold for means"
	oneByOneLeavesOut   = "the batch: requests are served whole, one after the other, in exponential times"
	promptsLeaveOut     = "decoding, the limit on ITL and that prompts share iterations: they are computed one by one"
)

// comparison returns the answers of all methods, those of the percentile method first.
func (s sizing) comparison(a answers) []estimate {
	all := []estimate{estimated("percentiles, by formula", formulaLeavesOut, a.formula.Rate, a.formula.LimitedBy)}
	if a.simulated != nil {
		all = append(all, estimated("percentiles, by simulation", simulationLeavesOut, a.simulated.Rate, a.simulated.LimitedBy))
	}
	return append(all,
		estimated("means of the work", meansLeaveOut, a.formula.MeanRate, ""),
		s.byBirthDeath(), s.byOneServer(), s.byPrompts())
}

func estimated(method, leavesOut string, rate float64, limitedBy queueing.Limit) estimate {
	return estimate{Method: method, Rate: &rate, LimitedBy: limitedBy, LeavesOut: leavesOut}
}

func unanswered(method, leavesOut, problem string) estimate {
	return estimate{Method: method, LeavesOut: leavesOut, Problem: problem}
}

// byBirthDeath is the rate at which the means reach the limits.
func (s sizing) byBirthDeath() estimate {
	const method = "birth-death queue, means"
	service, queue, err := s.birthDeath()
	if err != nil {
		return unanswered(method, birthDeathLeavesOut, err.Error())
	}
	rate, limitedBy := service.MaxMeanRate(queue, s.Objective)
	return estimated(method, birthDeathLeavesOut, rate, limitedBy)
}

// byOneServer is the rate at which the percentile of TTFT reaches its limit if the replica serves
// one request at a time, and no more requests wait than its batch has places.
func (s sizing) byOneServer() estimate {
	const method = "M/M/1/K"
	service, _, err := s.birthDeath()
	if err != nil {
		return unanswered(method, oneByOneLeavesOut, err.Error())
	}
	queue, err := textbook.SingleServer(1/service.Rates()[0], s.Replica.MaxSequences-1)
	if err != nil {
		return unanswered(method, oneByOneLeavesOut, err.Error())
	}
	switch limits := s.Objective; {
	case limits.ITL > 0 && service.ITL(1) > limits.ITL:
		return estimated(method, oneByOneLeavesOut, 0, queueing.LimitITL)
	case limits.TTFT == 0:
		return estimated(method, oneByOneLeavesOut, queue.Capacity(), queueing.LimitCompute)
	}
	rate := queue.MaxRate(s.Objective.TTFT, func(state textbook.State) float64 {
		return state.WaitQuantile(s.Objective.Percentile) + service.Prefill(1)
	})
	return estimated(method, oneByOneLeavesOut, rate, limitBelow(rate, queue.Capacity()))
}

// byPrompts is the rate at which the percentile of TTFT reaches its limit if prompts are computed
// one by one.
func (s sizing) byPrompts() estimate {
	const method = "M/G/1 of prompts"
	if s.flags.role == string(fleet.RoleDecode) || s.Replica.PrefixHits == 1 {
		return unanswered(method, promptsLeaveOut, "there are no prompts to compute")
	}
	server, err := s.promptServer()
	if err != nil {
		return unanswered(method, promptsLeaveOut, err.Error())
	}
	capacity := 1 / server.Service
	if s.Objective.TTFT == 0 {
		return estimated(method, promptsLeaveOut, capacity, queueing.LimitCompute)
	}
	low, high := 0.0, capacity
	for range 60 {
		rate := (low + high) / 2
		state, err := server.At(rate)
		if err == nil && state.WaitQuantile(s.Objective.Percentile)+server.Service <= s.Objective.TTFT {
			low = rate
		} else {
			high = rate
		}
	}
	return estimated(method, promptsLeaveOut, low, limitBelow(low, capacity))
}

// limitBelow returns the limit of a rate that only TTFT or the capacity of the server limits.
func limitBelow(rate, capacity float64) queueing.Limit {
	if rate < 0.9999*capacity {
		return queueing.LimitTTFT
	}
	return queueing.LimitCompute
}

// promptPoints is the number of equally likely lengths that stand for the prompts.
const promptPoints = 1024

// promptServer returns the server with the service times of prompts that are computed alone.
func (s sizing) promptServer() (textbook.GeneralService, error) {
	alone := s.Replica
	alone.MaxSequences, alone.KVTokens = 1, 0
	var mean, square float64
	for i := range promptPoints {
		length := s.prompts.Quantile((float64(i) + 0.5) / promptPoints)
		service, err := queueing.NewService(alone, alone.Request(length, 1))
		if err != nil {
			return textbook.GeneralService{}, err
		}
		time := service.Prefill(1)
		mean += time / promptPoints
		square += time * time / promptPoints
	}
	return textbook.GeneralService{Service: mean, SquaredCV: max(0, square/(mean*mean)-1)}, nil
}
