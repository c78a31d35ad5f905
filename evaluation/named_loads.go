package evaluation

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// NamedLoad is a load that is generated from a seed.
type NamedLoad struct {
	Name, Summary string
	// Parameters are numbers above 0 with their defaults, by name.
	Parameters map[string]float64
	// FromFile is whether the load is regenerated from a file, which the parameter file names.
	FromFile bool
	// Fleet and Setup are those that the load brings along; empty ones do not count.
	Fleet string
	Setup SetupOptions

	build func(p map[string]float64) shape
}

// shape is a generated load: Poisson arrivals at a rate, which make the bursts those of the rate,
// unless they have a burstiness of their own.
type shape struct {
	rate           simulation.Rate
	seconds        float64
	burstiness     float64
	prompt, output simulation.Lengths
	// by which both are multiplied in the second of three parts; 0: they stay
	longerPrompts, longerOutputs float64
}

// The lengths of Azure's conversation trace of 2023: mean and 99th percentile.
var (
	chatPrompts = simulation.Lengths{Mean: 1155, P99: 4142, Max: 14_000}
	chatOutputs = simulation.Lengths{Mean: 211, P99: 601, Max: 1000}
)

// NamedLoads returns the loads that ParseLoad knows. Rates are requests per second.
func NamedLoads() []NamedLoad { return slices.Concat(rateLoads(), otherLoads()) }

// rateLoads are those of chat requests, which differ in their rate.
func rateLoads() []NamedLoad {
	return []NamedLoad{
		{
			Name: "constant", Summary: "one rate", Parameters: map[string]float64{"rate": 20, "minutes": 60},
			build: func(p map[string]float64) shape { return chat(p, simulation.Ramps(point(0, p["rate"]))) },
		},
		{
			Name: "ramp", Summary: "rises for half of the time, and falls again", Parameters: map[string]float64{"low": 5, "high": 60, "minutes": 60},
			build: func(p map[string]float64) shape {
				m := p["minutes"]
				return chat(p, simulation.Ramps(point(0, p["low"]), point(m/2, p["high"]), point(m, p["low"])))
			},
		},
		{
			Name: "step", Summary: "the high rate in the second of three parts", Parameters: map[string]float64{"low": 10, "high": 50, "minutes": 60},
			build: func(p map[string]float64) shape {
				m := p["minutes"]
				return chat(p, phases(phase{m / 3, p["low"]}, phase{m / 3, p["high"]}, phase{m / 3, p["low"]}))
			},
		},
		{
			Name: "trickle-after-burst", Summary: "a busy sixth of the time, then few requests", Parameters: map[string]float64{"burst": 40, "trickle": 1, "minutes": 60},
			build: func(p map[string]float64) shape {
				m := p["minutes"]
				return chat(p, phases(phase{m / 6, p["burst"]}, phase{m, p["trickle"]}))
			},
		},
		{
			Name: "on-off", Summary: "the high rate for half of each period", Parameters: map[string]float64{"on": 40, "off": 2, "period": 10, "minutes": 60},
			build: onOff,
		},
		{
			Name: "spike", Summary: "times the factor for five minutes, a third into the load", Parameters: map[string]float64{"rate": 10, "factor": 5, "minutes": 60},
			build: func(p map[string]float64) shape {
				m, rate := p["minutes"], p["rate"]
				return chat(p, phases(phase{m / 3, rate}, phase{5, rate * p["factor"]}, phase{m, rate}))
			},
		},
		{
			Name: "cron", Summary: "one rate, and a burst of some seconds on top of it in each period", Parameters: map[string]float64{"rate": 5, "burst": 60, "seconds": 20, "period": 10, "minutes": 60},
			build: cron,
		},
	}
}

// otherLoads have other lengths, or fleets and files.
func otherLoads() []NamedLoad {
	return []NamedLoad{
		{
			Name: "long-prompts", Summary: "one rate, prompts of 100,000 tokens, TTFT 30 s, on H100", Parameters: map[string]float64{"rate": 0.3, "minutes": 60},
			Fleet: "chat-h100", Setup: SetupOptions{Objective: fleet.Objective{TTFT: 30 * time.Second}},
			build: func(p map[string]float64) shape {
				s := chat(p, simulation.Ramps(point(0, p["rate"])))
				s.prompt = simulation.Lengths{Mean: 100_000, P99: 120_000, Max: 125_000}
				return s
			},
		},
		{
			Name: "long-outputs", Summary: "one rate, outputs of 8,000 tokens", Parameters: map[string]float64{"rate": 2, "minutes": 60},
			build: func(p map[string]float64) shape {
				s := chat(p, simulation.Ramps(point(0, p["rate"])))
				s.output = simulation.Lengths{Mean: 8000, P99: 12_000, Max: 14_000}
				return s
			},
		},
		{
			Name: "longer-requests", Summary: "one rate; prompts and outputs are longer in the second of three parts, by factors",
			Parameters: map[string]float64{"rate": 12, "prompts": 1, "outputs": 3, "minutes": 60},
			build: func(p map[string]float64) shape {
				s := chat(p, simulation.Ramps(point(0, p["rate"])))
				s.longerPrompts, s.longerOutputs = p["prompts"], p["outputs"]
				return s
			},
		},
		{
			Name: "code-bursts", Summary: "bursts and lulls of minutes, 2,000 and 30 tokens", Parameters: map[string]float64{"rate": 10, "levels": 1, "minutes": 60},
			build: func(p map[string]float64) shape {
				return bursts(p, simulation.Lengths{Mean: 2000, P99: 7000, Max: 7500}, simulation.Lengths{Mean: 30, P99: 300, Max: 1500})
			},
		},
		{
			Name: "long-context", Summary: "bursts and lulls of minutes, 30,000 and 300 tokens, TTFT 10 s, on H100", Parameters: map[string]float64{"rate": 0.5, "levels": 1, "minutes": 60},
			Fleet: "chat-h100", Setup: SetupOptions{Objective: fleet.Objective{TTFT: 10 * time.Second, ITL: 100 * time.Millisecond}},
			build: func(p map[string]float64) shape {
				return bursts(p, simulation.Lengths{Mean: 30_000, P99: 110_000, Max: 125_000}, simulation.Lengths{Mean: 300, P99: 1500, Max: 2000})
			},
		},
		{
			Name: "llm-d-episode", Summary: "the published episode: 2, 4, 6, 8, 10, 4, 1 req/s of 4,000 and 1,000 tokens, start-up 100 s",
			Parameters: map[string]float64{"rate": 1}, Fleet: "episode",
			Setup: SetupOptions{Objective: fleet.Objective{TTFT: 3 * time.Second, ITL: 100 * time.Millisecond}, Startup: 100 * time.Second},
			build: episode,
		},
		{
			Name: "servegen-day", Summary: "a random share of a day of ServeGen, by 10-minute windows with their rates, lengths and burstiness",
			Parameters: map[string]float64{"mean": 20, "day": 1}, FromFile: true,
		},
	}
}

// chat returns a load of chat requests for the minutes of the parameters.
func chat(p map[string]float64, rate simulation.Rate) shape {
	return shape{rate: rate, seconds: p["minutes"] * 60, prompt: chatPrompts, output: chatOutputs}
}

// lengthen multiplies the lengths of the requests of the second of three parts.
func (s shape) lengthen(requests []simulation.Request) {
	if s.longerPrompts <= 0 || s.longerOutputs <= 0 {
		return
	}
	for i := range requests {
		if r := &requests[i]; r.Arrival >= s.seconds/3 && r.Arrival < s.seconds*2/3 {
			r.Prompt = max(1, int(math.Round(float64(r.Prompt)*s.longerPrompts)))
			r.Output = max(1, int(math.Round(float64(r.Output)*s.longerOutputs)))
		}
	}
}

// bursts returns requests at levels that last 90 s on average. The parameter levels is their seed.
func bursts(p map[string]float64, prompt, output simulation.Lengths) shape {
	seconds := p["minutes"] * 60
	levels := simulation.Levels{Seed: uint64(p["levels"]), PerSecond: p["rate"], Variation: 0.8, Duration: 90, Until: seconds}
	return shape{rate: levels.Rate(), seconds: seconds, burstiness: 2, prompt: prompt, output: output}
}

func point(minute, rate float64) simulation.Point {
	return simulation.Point{At: minute * 60, PerSecond: rate}
}

// phase is a rate for some minutes.
type phase struct{ minutes, rate float64 }

// phases returns the rates one after the other. After the last one the rate is 0.
func phases(all ...phase) simulation.Rate {
	var bursts []simulation.Burst
	from := 0.0
	for _, s := range all {
		bursts = append(bursts, simulation.Burst{At: from, Duration: s.minutes * 60, PerSecond: s.rate})
		from += s.minutes * 60
	}
	return simulation.Bursts(bursts...)
}

func onOff(p map[string]float64) shape {
	return chat(p, alternating(p["period"]*60, p["period"]*30, p["on"], p["off"]))
}

func cron(p map[string]float64) shape {
	return chat(p, alternating(p["period"]*60, p["seconds"], p["rate"]+p["burst"], p["rate"]))
}

// alternating returns the high rate for the first seconds of each period, and the low one after.
func alternating(period, seconds, high, low float64) simulation.Rate {
	return func(t float64) float64 {
		if math.Mod(t, period) < seconds {
			return high
		}
		return low
	}
}

// episode is the load of llm-d's published run, whose rates its parameter multiplies: 330 s, five
// times 360 s, and 300 s.
func episode(p map[string]float64) shape {
	var all []phase
	for i, rate := range []float64{2, 4, 6, 8, 10, 4, 1} {
		minutes := 6.0
		switch i {
		case 0:
			minutes = 5.5
		case 6:
			minutes = 5
		}
		all = append(all, phase{minutes, rate * p["rate"]})
	}
	return shape{
		rate: phases(all...), seconds: 330 + 5*360 + 300,
		prompt: simulation.Lengths{Mean: 4000}, output: simulation.Lengths{Mean: 1000},
	}
}

// ParameterText returns the parameters with their defaults, sorted.
func (n NamedLoad) ParameterText() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(n.Parameters)) {
		parts = append(parts, fmt.Sprintf("%s=%g", name, n.Parameters[name]))
	}
	if n.FromFile {
		parts = append(parts, "file=PATH")
	}
	return strings.Join(parts, ",")
}
