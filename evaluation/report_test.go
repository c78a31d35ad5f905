package evaluation

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorstMinutesAreThoseOfTheFirstPolicyInTheOrderOfTime(t *testing.T) {
	first := Outcome{Policy: "wva", Minutes: []Minute{{60, 60}, {100, 50}, {9, 0}, {30, 27}}}
	other := Outcome{Policy: "static", Minutes: []Minute{{60, 6}, {100, 100}, {9, 9}, {30, 15}}}
	table := worstTable([]Outcome{first, other})
	require.Equal(t, []string{"Minute", "Req/s", "wva", "static"}, table.Columns)
	require.Len(t, table.Rows, 2)
	require.Equal(t, "1", table.Rows[0].Name)
	require.Equal(t, []string{"1.7", "50.0 %", "100.0 %"}, table.Rows[0].Cells)
	require.Equal(t, []string{"0.5", "90.0 %", "50.0 %"}, table.Rows[1].Cells)
	require.Empty(t, worstTable([]Outcome{{Minutes: []Minute{{60, 60}}}}).Rows)
}

func TestReplicasAreSumsOverVariants(t *testing.T) {
	s := replicasOf(Outcome{Policy: "wva", Replicas: []Change{{0, "a", 1}, {0, "b", 2}, {60, "a", 3}, {90, "b", 0}}})
	require.Equal(t, []float64{0, 60, 90}, s.Seconds)
	require.Equal(t, []float64{3, 5, 3}, s.Values)
}

func TestReportOfAnInterruptedSweepIsComplete(t *testing.T) {
	c := plain(t, "chat-h100", "constant:rate=5,minutes=3", SetupOptions{})
	load, err := ParseLoad(c.Load)
	require.NoError(t, err)
	o := SweepOptions{Entries: []Entry{{Load: load, Setup: c.Setup}}, Policies: []Policy{static(), kpa()}}
	outcome, err := Run(t.Context(), c, static(), Setting{Knob: 2, Choice: eachVariant(c.Setup)[0]})
	require.NoError(t, err)
	var page bytes.Buffer
	require.NoError(t, Compare(o, []Outcome{outcome}, true).WriteReport(&page, o, "wvactl"))
	require.Contains(t, page.String(), "2 policies on 1 load.")
	require.Contains(t, page.String(), "some runs are missing")
	page.Reset()
	require.NoError(t, Compare(o, nil, true).WriteReport(&page, o, "wvactl"))
	require.NotContains(t, page.String(), "<svg")
}
