package evaluation_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wva-project/wva/evaluation"
	"github.com/wva-project/wva/simulation"
)

// The expected number of requests is the integral of the rate. Its standard deviation is that of a
// Poisson stream.
func TestNamedLoadsHaveTheirTotals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		load           string
		seconds        float64
		requests       float64
		prompt, output float64 // mean tokens
	}{
		{"constant", 3600, 20 * 3600, 1155, 211},
		{"constant:rate=2,minutes=10", 600, 1200, 1155, 211},
		{"ramp", 3600, 32.5 * 3600, 1155, 211},
		{"step", 3600, (10 + 50 + 10) * 1200, 1155, 211},
		{"trickle-after-burst", 3600, 600*40 + 3000, 1155, 211},
		{"on-off", 3600, 1800*40 + 1800*2, 1155, 211},
		{"cron", 3600, 3600*5 + 6*20*60, 1155, 211},
		{"spike", 3600, 3300*10 + 300*50, 1155, 211},
		{"long-prompts", 3600, 0.3 * 3600, 100_000, 211},
		{"long-outputs", 3600, 2 * 3600, 1155, 8000},
		{"longer-requests", 3600, 12 * 3600, 1155, 211 * 5.0 / 3},
		{"longer-requests:prompts=4,outputs=1", 3600, 12 * 3600, 1155 * 2, 211},
		{"code-bursts", 3600, 10 * 3600, 2000, 30},
		{"code-bursts:rate=20,levels=2", 3600, 20 * 3600, 2000, 30},
		{"long-context", 3600, 0.5 * 3600, 30_000, 300},
		{"llm-d-episode", 2430, 330*2 + 360*(4+6+8+10+4) + 300, 4000, 1000},
	}
	named := map[string]bool{"servegen-day": true} // has a test of its own
	for _, test := range tests {
		name, _, _ := strings.Cut(test.load, ":")
		named[name] = true
		t.Run(test.load, func(t *testing.T) {
			t.Parallel()
			c := newCase(t, "chat-h100", test.load, evaluation.SetupOptions{})
			if got := float64(len(c.Requests)); math.Abs(got-test.requests) > 4*math.Sqrt(test.requests) || c.Until != test.seconds {
				t.Errorf("%v requests in %v s, want about %v in %v s", got, c.Until, test.requests, test.seconds)
			}
			prompt, output := means(c.Requests)
			if math.Abs(prompt/test.prompt-1) > 0.06 || math.Abs(output/test.output-1) > 0.06 {
				t.Errorf("mean lengths %v and %v, want about %v and %v", prompt, output, test.prompt, test.output)
			}
			if last := c.Requests[len(c.Requests)-1].Arrival; last > c.Until {
				t.Errorf("the last request arrives at %v s, after the end at %v s", last, c.Until)
			}
		})
	}
	for _, l := range evaluation.NamedLoads() {
		if !named[l.Name] {
			t.Errorf("load %s has no totals here", l.Name)
		}
	}
}

func means(requests []simulation.Request) (prompt, output float64) {
	for _, r := range requests {
		prompt += float64(r.Prompt) / float64(len(requests))
		output += float64(r.Output) / float64(len(requests))
	}
	return prompt, output
}

func TestSeedsDrawOtherRequests(t *testing.T) {
	t.Parallel()
	setup, load := newSetup(t, "chat-h100", evaluation.SetupOptions{}), mustLoad(t, "constant:rate=5,minutes=5")
	var first []evaluation.Case
	for _, seed := range []uint64{1, 1, 2} {
		c, err := evaluation.NewCase(load, setup, seed)
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, c)
	}
	if first[0].Requests[0] != first[1].Requests[0] || first[0].Requests[0] == first[2].Requests[0] {
		t.Errorf("first requests %+v, want those of seed 1 equal and that of seed 2 another", first)
	}
}

// Two windows a day: the second day is chosen and scaled to its mean. It keeps the windows'
// lengths, and has the burstiness of a random share of their requests: a twentieth of arrivals with
// a squared coefficient of variation of 181 has 10.
func TestServeGenDayIsRegeneratedFromItsWindows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "windows.csv")
	text := `t_s,rate_rps,active_clients,rate_weighted_client_cv,mean_input_tokens,mean_output_tokens,rate_share_with_lengths
0,100,5,1,500,100,1
86400,10,5,1,400,50,1
129600,30,5,13.454,800,200,1
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newCase(t, "chat-h100", "servegen-day:mean=1,day=2,file="+path, evaluation.SetupOptions{})
	if c.Until != 86400 || math.Abs(float64(len(c.Requests))/86400-1) > 0.02 {
		t.Fatalf("%d requests in %v s, want one a second for a day", len(c.Requests), c.Until)
	}
	var gaps [2][]float64
	var prompts [2]float64
	for i, r := range c.Requests[1:] {
		half := int(r.Arrival / 43200)
		gaps[half] = append(gaps[half], r.Arrival-c.Requests[i].Arrival)
		prompts[half] += float64(r.Prompt)
	}
	for half, want := range []struct{ rate, cv, prompt float64 }{{0.5, 1, 400}, {1.5, math.Sqrt(10), 800}} {
		mean, cv := spread(gaps[half])
		prompt := prompts[half] / float64(len(gaps[half]))
		if math.Abs(1/mean/want.rate-1) > 0.05 || math.Abs(cv/want.cv-1) > 0.08 || math.Abs(prompt/want.prompt-1) > 0.03 {
			t.Errorf("window %d: %v req/s with CV %v and prompts of %v, want %+v", half, 1/mean, cv, prompt, want)
		}
	}
}

// spread returns the mean and the coefficient of variation.
func spread(values []float64) (mean, cv float64) {
	square := 0.0
	for _, v := range values {
		mean += v / float64(len(values))
		square += v * v / float64(len(values))
	}
	return mean, math.Sqrt(square-mean*mean) / mean
}

func TestInvalidLoadsSayWhatToWrite(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.csv")
	if err := os.WriteFile(empty, []byte("t_s,rate_rps\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for load, want := range map[string]string{
		"moon":                          `load "moon" is unknown; it is one of constant, ramp`,
		"spike:moon=1":                  `parameter "moon" is unknown; it is one of factor, minutes, rate`,
		"spike:rate=0,factor=x":         "parameter rate is \"0\"; set a number above 0\nparameter factor is \"x\"",
		"servegen-day":                  "no file; name a CSV with the columns t_s, rate_rps, ",
		"servegen-day:file=nowhere.csv": "load servegen-day:file=nowhere.csv: open nowhere.csv",
		"servegen-day:file=" + empty:    "no column rate_weighted_client_cv",
	} {
		if _, err := evaluation.ParseLoad(load); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", load, err, want)
		}
	}
}
