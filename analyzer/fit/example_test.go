package fit_test

import (
	"fmt"
	"strings"

	"github.com/wva-project/wva/analyzer/fit"
)

// Rows with one length of prompts do not show all parameters; warnings name the rows to measure.
func ExampleFit() {
	table, err := fit.ReadTable(strings.NewReader(`model,gpu,concurrency,isl,osl,ttft_ms,tpot_ms
Llama-3.1-8B,H100,1,1024,256,32,6.3
Llama-3.1-8B,H100,16,1024,256,60,8.1
Llama-3.1-8B,H100,64,1024,256,110,13.5
`), fit.UnitByName)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, group := range table.Groups {
		sparsity, _ := fit.Sparsity(group.Model)
		result, err := fit.Fit(group.Rows, sparsity)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: an empty iteration takes %.0f ms\n", group.Key, result.Cost.Alpha)
		for _, w := range result.Warnings[:1] {
			fmt.Printf("%s: %s\n", w.Parameter, w.Problem)
		}
	}
	// Output:
	// Llama-3.1-8B on H100: an empty iteration takes 6 ms
	// beta: the rows do not distinguish it from gamma, since all have isl 1024 and osl 256
}
