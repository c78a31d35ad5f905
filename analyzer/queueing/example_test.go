package queueing_test

import (
	"fmt"

	"github.com/wva-project/wva/analyzer/queueing"
)

// The capacity of an H100 for chats with Llama-3.1-8B, and an objective that it cannot meet.
func ExampleSizer_MaxRate() {
	prompts := must(queueing.AssumedLengths(1155))
	outputs := must(queueing.AssumedLengths(211))
	question := queueing.Question{
		Replica: queueing.Replica{
			Profile: queueing.Profile{
				Iteration: 6.07e-3, PerSequence: 8.4e-6, PerContextToken: 4.24e-8,
				PerPromptToken: 1.34e-5, PerPromptTokenSquared: 8.3e-10,
			},
			MaxSequences: 256, BatchedTokens: 2048, KVTokens: 440_000,
		},
		Mix:       must(queueing.NewMix(prompts, outputs)),
		Objective: queueing.Objective{TTFT: 1, ITL: 0.030, Percentile: 0.95},
	}
	var sizer queueing.Sizer
	answer := must(sizer.MaxRate(question))
	fmt.Printf("%.0f req/s, limited by %s\n", answer.Rate, answer.LimitedBy)

	question.Objective.ITL = 0.005
	answer = must(sizer.MaxRate(question))
	fmt.Println("infeasible:", answer.Infeasible)
	fmt.Println(answer.Remedy)
	// Output:
	// 22 req/s, limited by ITL
	// infeasible: true
	// an empty replica needs 6.07 ms a token; raise itl above 6.07 ms or use a faster accelerator
}
