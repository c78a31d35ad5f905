package record

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/engine"
	"github.com/wva-project/wva/fleet"
)

// observed is the answers about every window and every block. Values that are missing are not
// numbers.
type observed struct {
	scrapes     []float64
	firstTokens []float64 // in the window
	late        []float64 // of these, in its second half
	waiting     []float64 // at its end
	lengths     [2]lengths
}

// lengths are those of prompts or of outputs.
type lengths struct {
	tokens, requests []float64        // by window
	buckets          [][]fleet.Bucket // by block; none if nothing was counted
}

// of are the quantities of prompts and of outputs.
var of = [2]struct{ tokens, requests, histogram engine.Quantity }{
	{engine.PromptTokens, engine.Prompts, engine.PromptLengths},
	{engine.OutputTokens, engine.Outputs, engine.OutputLengths},
}

// reader sends queries.
type reader struct {
	Options
	done, all int
}

func newReader(o Options) *reader {
	r := &reader{Options: o}
	columns, histograms := 4+2*len(of), len(of)
	r.all = columns*chunks(o.windows()) + histograms*chunks(o.blocks())
	return r
}

// blocks returns the number of blocks of the period, the last of which may be shorter.
func (o Options) blocks() int { return int((o.End.Sub(o.begin()) + block - 1) / block) }

func chunks(points int) int { return (points + maxPoints - 1) / maxPoints }

// observe sends all queries.
func (r *reader) observe(ctx context.Context) (*observed, error) {
	var o observed
	type column struct {
		values *[]float64
		text   string
	}
	columns := []column{
		{&o.scrapes, r.scrapes()},
		{&o.firstTokens, r.total(engine.FirstTokens, grown(r.Step))},
		{&o.late, r.total(engine.FirstTokens, grown(r.Step/2))},
		{&o.waiting, r.total(engine.Waiting, itself)},
	}
	for i, q := range of {
		columns = append(columns,
			column{&o.lengths[i].tokens, r.total(q.tokens, grown(r.Step))}, column{&o.lengths[i].requests, r.total(q.requests, grown(r.Step))})
	}
	for _, c := range columns {
		var err error
		if *c.values, err = r.column(ctx, c.text); err != nil {
			return nil, err
		}
	}
	for i, q := range of {
		var err error
		if o.lengths[i].buckets, err = r.histograms(ctx, q.histogram); err != nil {
			return nil, err
		}
	}
	return &o, nil
}

// column returns the value of a query at the end of each window.
func (r *reader) column(ctx context.Context, text string) ([]float64, error) {
	values := slices.Repeat([]float64{math.NaN()}, r.windows())
	err := r.each(ctx, series{text, r.Step, len(values)}, func(_ model.Metric, i int, value float64) { values[i] = value })
	return values, err
}

// histograms returns the buckets of each block. Of several names, the first with requests counts.
func (r *reader) histograms(ctx context.Context, q engine.Quantity) ([][]fleet.Bucket, error) {
	type bound struct{ name, upper string }
	blocks := make([]map[bound]float64, r.blocks())
	err := r.each(ctx, series{r.buckets(q), block, len(blocks)}, func(m model.Metric, i int, value float64) {
		if blocks[i] == nil {
			blocks[i] = map[bound]float64{}
		}
		blocks[i][bound{string(m[nameLabel]), string(m[boundLabel])}] = value
	})
	histograms := make([][]fleet.Bucket, len(blocks))
	for i, found := range blocks {
		for name := range r.names(q) {
			below := map[float64]float64{}
			for b, value := range found {
				if upper, err := strconv.ParseFloat(b.upper, 64); err == nil && b.name == strconv.Itoa(name) {
					below[upper] = value
				}
			}
			if histograms[i] = ofBuckets(below); histograms[i] != nil {
				break
			}
		}
	}
	return histograms, err
}

// series is a query about so many instants, the last of which is at or after the end.
type series struct {
	text   string
	step   time.Duration
	points int
}

// each sends the query, in parts, and calls the function with each value.
func (r *reader) each(ctx context.Context, s series, do func(m model.Metric, i int, value float64)) error {
	first := r.begin().Add(s.step)
	for from := 0; from < s.points; from += maxPoints {
		until := min(from+maxPoints, s.points)
		asked := v1.Range{Start: first.Add(time.Duration(from) * s.step), End: first.Add(time.Duration(until-1) * s.step), Step: s.step}
		matrix, err := r.ask(ctx, s.text, asked)
		if err != nil {
			return err
		}
		for _, stream := range matrix {
			for _, point := range stream.Values {
				i := int(point.Timestamp.Time().Sub(first) / s.step)
				if value := float64(point.Value); i >= 0 && i < s.points && !math.IsInf(value, 0) {
					do(stream.Metric, i, value)
				}
			}
		}
		r.done++
		if r.Progress != nil {
			r.Progress(r.done, r.all)
		}
	}
	return nil
}

// ask sends one range query.
func (o Options) ask(ctx context.Context, text string, asked v1.Range) (model.Matrix, error) {
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	value, warnings, err := o.query(limited, text, asked)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("prometheus sent no answer within %s; shorten the period, raise the step, or give Prometheus more CPU", o.Timeout)
	case err != nil:
		return nil, fmt.Errorf("asking Prometheus about %s to %s: %w; check the address, the credentials, and that Prometheus is version 2.42 or later",
			asked.Start.UTC().Format(time.RFC3339), asked.End.UTC().Format(time.RFC3339), err)
	}
	for _, warning := range warnings {
		if !strings.HasPrefix(warning, "PromQL ") { // on the expression, and not on the data
			return nil, fmt.Errorf("the answer of Prometheus is not complete: %s; repair it, or shorten the period to what it has", warning)
		}
	}
	return value, nil
}

func (o Options) query(ctx context.Context, text string, asked v1.Range) (model.Matrix, v1.Warnings, error) {
	value, warnings, _, err := o.API.QueryRange(ctx, text, asked, v1.WithTimeout(o.Timeout))
	if err != nil {
		return nil, nil, err
	}
	matrix, is := value.(model.Matrix)
	if !is {
		return nil, nil, fmt.Errorf("the answer is a %s and no matrix", value.Type())
	}
	return matrix, warnings, nil
}

// onlyModel returns the model of the period that has the name and the namespace of the options, or
// an error that lists those found.
func (o Options) onlyModel(ctx context.Context) (fleet.ModelID, error) {
	step := max(o.Step, o.Since/maxPoints)
	matrix, err := o.ask(ctx, o.models(), v1.Range{Start: o.begin(), End: o.End, Step: step})
	if err != nil {
		return fleet.ModelID{}, err
	}
	var found []fleet.ModelID
	for _, stream := range matrix {
		found = append(found, fleet.ModelID{
			Namespace: string(stream.Metric[model.LabelName(o.NamespaceLabel)]), Name: string(stream.Metric[model.LabelName(o.ModelLabel)]),
		})
	}
	slices.SortFunc(found, fleet.ModelID.Compare)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && o.Model.Name != "":
		return fleet.ModelID{}, fmt.Errorf("no engine of the model %s in the last %s; check its name in the engines' metrics, and the names of labels", o.Model.Name, o.Since)
	case len(found) == 0:
		return fleet.ModelID{}, fmt.Errorf("no engine with the label %s in the last %s; check that Prometheus scrapes the engines, and the names of labels", o.ModelLabel, o.Since)
	}
	var texts []string
	for i, id := range found {
		if i == 10 {
			texts = append(texts, fmt.Sprintf("%d more", len(found)-i))
			break
		}
		texts = append(texts, id.Name+" in "+id.Namespace)
	}
	return fleet.ModelID{}, fmt.Errorf("%d models were found: %s; name one and its namespace", len(found), strings.Join(texts, ", "))
}
