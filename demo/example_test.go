package demo_test

import (
	"context"
	"fmt"
	"os"

	"github.com/wva-project/wva/demo"
)

// The generated load on two nodes with one L40S each, with the summary as JSON. It needs a few
// seconds.
func Example() {
	pool, err := demo.ParsePool("L40S=2x1")
	if err != nil {
		panic(err)
	}
	summary, err := demo.Run(context.Background(), demo.Options{Pools: []demo.Pool{pool}, JSON: true, Output: os.Stdout})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.1f %% within the SLO at a cost of %.2f\n", 100*summary.Attainment, summary.Cost)
}
