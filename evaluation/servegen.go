package evaluation

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/simulation"
)

// window is one row of ServeGen's aggregate: what arrives from a time on.
type window struct {
	at             float64 // seconds
	rate           float64 // requests per second
	cv             float64 // of the gaps between the requests of a client
	prompt, output float64 // mean tokens
}

// The columns of the file.
var servegenColumns = []string{"t_s", "rate_rps", "rate_weighted_client_cv", "mean_input_tokens", "mean_output_tokens"}

const day = 24 * 3600.0

// readServeGen reads the windows of a file, in the order of their times.
func readServeGen(path string) ([]window, error) {
	if path == "" {
		return nil, fmt.Errorf("no file; name a CSV with the columns %s with file=PATH", strings.Join(servegenColumns, ", "))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	windows, err := parseServeGen(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return windows, nil
}

func parseServeGen(from io.Reader) ([]window, error) {
	rows, err := csv.NewReader(from).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) < 2 {
		return nil, errors.New("no windows; give it a header and a line for each window")
	}
	var columns []int
	for _, name := range servegenColumns {
		at := slices.Index(rows[0], name)
		if at < 0 {
			return nil, fmt.Errorf("no column %s; the columns are %v", name, rows[0])
		}
		columns = append(columns, at)
	}
	var windows []window
	for i, row := range rows[1:] {
		var w window
		for j, into := range []*float64{&w.at, &w.rate, &w.cv, &w.prompt, &w.output} {
			number, err := strconv.ParseFloat(row[columns[j]], 64)
			if err != nil || !(number >= 0) || math.IsInf(number, 0) {
				return nil, fmt.Errorf("line %d: %s is %q; write a number >= 0", i+2, servegenColumns[j], row[columns[j]])
			}
			*into = number
		}
		if i > 0 && w.at <= windows[i-1].at {
			return nil, fmt.Errorf("line %d: the time %v does not follow %v; sort the windows", i+2, w.at, windows[i-1].at)
		}
		windows = append(windows, w)
	}
	return windows, nil
}

// servegenDay returns the generator of one day of windows, whose rates are scaled to a mean. Each
// window has arrivals of its own, with gamma distributed gaps.
func servegenDay(windows []window, p map[string]float64) (func(fleet.ModelID, uint64) ([]simulation.Request, float64, error), error) {
	begin := (p["day"] - 1) * day
	var own []window
	sum := 0.0
	for _, w := range windows {
		if w.at >= begin && w.at < begin+day {
			own = append(own, w)
			sum += w.rate
		}
	}
	if sum == 0 {
		return nil, fmt.Errorf("day %v has no requests; set day to 1 or the number of a later one", p["day"])
	}
	scale := p["mean"] / (sum / float64(len(own)))
	return func(model fleet.ModelID, seed uint64) ([]simulation.Request, float64, error) {
		var all []simulation.Request
		for i, w := range own {
			until := begin + day
			if i+1 < len(own) {
				until = own[i+1].at
			}
			requests, err := w.generate(model, until-w.at, scale, seed*1000+uint64(i))
			if err != nil {
				return nil, 0, err
			}
			for _, r := range requests {
				r.Arrival += w.at - begin
				all = append(all, r)
			}
		}
		return all, day, nil
	}, nil
}

// generate draws the requests of a window, whose lengths spread as those of the chat requests do. A
// scale below 1 draws that share of them at random: if gaps have a squared coefficient of variation
// of c, those between a share p have 1 + p·(c-1). A burst lasts as long as in the trace then, and
// is not stretched by as much as the rate is lower.
func (w window) generate(model fleet.ModelID, seconds, scale float64, seed uint64) ([]simulation.Request, error) {
	if w.rate == 0 {
		return nil, nil
	}
	lengths := func(mean float64, like simulation.Lengths) simulation.Lengths {
		mean = max(1, mean)
		return simulation.Lengths{Mean: mean, P99: mean * like.P99 / like.Mean, Max: like.Max}
	}
	burstiness := 1.0 // of a window whose variation is not known, too
	if w.cv > 0 {
		burstiness += float64(min(1, scale) * (w.cv*w.cv - 1))
	}
	return simulation.Generate(simulation.Stream{
		Model: model, Seed: seed, Until: seconds, Rate: simulation.Ramps(simulation.Point{PerSecond: w.rate * scale}),
		Burstiness: burstiness, Prompt: lengths(w.prompt, chatPrompts), Output: lengths(w.output, chatOutputs),
	})
}
