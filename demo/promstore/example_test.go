package promstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/wva-project/wva/demo/promstore"
)

// Two scrapes of a counter, and its rate.
func Example() {
	store, err := promstore.New()
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, second := range []int{0, 15, 30} {
		err := store.Scrape("llm/chat-0", begin.Add(time.Duration(second)*time.Second), []promstore.Sample{{
			Name: "requests_total", Labels: promstore.Labels("namespace", "llm", "pod", "chat-0"), Value: float64(2 * second),
		}})
		if err != nil {
			panic(err)
		}
	}
	vector, err := store.Query(context.Background(), "sum by (pod) (rate(requests_total[30s]))", begin.Add(30*time.Second))
	if err != nil {
		panic(err)
	}
	for _, sample := range vector {
		fmt.Println(sample.Metric, sample.F)
	}
	// Output:
	// {pod="chat-0"} 2
}
