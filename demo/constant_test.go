package demo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/demo"
	"github.com/wva-project/wva/fleet"
)

// constant returns a trace of some minutes with equal requests at equal distances.
func constant(minutes, perSecond int) string {
	var csv strings.Builder
	csv.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
	for i := range 60 * minutes * perSecond {
		fmt.Fprintf(&csv, "%.3f,1100,210\n", float64(i)/float64(perSecond))
	}
	return csv.String()
}

// TestConstantArrivalsNeverScaleUp replays loads that never change. No demand grows once the demo
// has warmed up: a cheaper mix may still take over. At 24 requests per second the next smaller mix
// would be enough only if its replicas shared the load in another way.
func TestConstantArrivalsNeverScaleUp(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 321 s under the race detector")
	}
	t.Parallel()
	const minutes, warm = 25, 10 * 60
	for _, perSecond := range []int{2, 6, 12, 18, 24} {
		t.Run(fmt.Sprint(perSecond), func(t *testing.T) {
			o := play(t, demo.Options{Trace: strings.NewReader(constant(minutes, perSecond))})
			before, rebalanced := map[string]int{}, 0
			for _, tick := range o.ticks {
				for _, v := range tick.Variants {
					if tick.Seconds > warm && v.Wanted > before[v.Name] {
						require.Equal(t, string(fleet.CodeRebalance), v.Code, "%d s: %s grows: %s", tick.Seconds, v.Name, v.Reason)
						rebalanced++
					}
					before[v.Name] = v.Wanted
				}
			}
			require.LessOrEqual(t, rebalanced, 1)
		})
	}
}
