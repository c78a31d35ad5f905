package planner

import (
	"time"

	"github.com/wva-project/wva/fleet"
)

// replicaReport is the metrics of one ready replica, of all its pods together.
type replicaReport struct {
	pod    string
	usage  *fleet.Usage // nil if none of them reports
	pods   int          // that report
	lately int          // pods that report, or did within silentFor
	age    time.Duration
}

// readReplicas reads the metrics of the ready replicas. Of a group, every pod that reports serves:
// a replica with fewer of them than another one is not known in full, and counts as one that
// reports nothing.
func (v *variant) readReplicas(ready []replicaReport, p Policy) {
	for _, r := range ready {
		v.reportingPods = max(v.reportingPods, r.pods)
	}
	for _, r := range ready {
		if r.pods < max(1, v.reportingPods) {
			r.usage = nil
		}
		before := v.reports.missing
		v.read(r.usage, r.age, p)
		if v.reports.missing > before {
			v.silentPods = append(v.silentPods, r.pod)
			if r.lately < max(1, v.reportingPods) && r.age >= silentFor {
				v.longSilent = append(v.longSilent, r.pod)
			}
		}
	}
}

// reportOf joins the rows of a replica's pods, of which row is that of the first. A row without
// gauges is that of a pod which no longer reports.
func reportOf(usages []*fleet.Usage, row *fleet.Usage, pod *fleet.Pod, now time.Time) replicaReport {
	report := replicaReport{pod: pod.Name, usage: row, age: now.Sub(pod.ReadyAt)}
	var rows []*fleet.Usage
	add := func(row *fleet.Usage) {
		if row == nil {
			return
		}
		report.lately++
		if reportsGauges(row) {
			rows = append(rows, row)
		}
	}
	add(report.usage)
	for _, name := range pod.Others {
		add(usageOf(usages, name))
	}
	report.pods = len(rows)
	if len(rows) > 1 || len(rows) == 1 && rows[0] != report.usage {
		report.usage = joinUsages(pod.Name, rows)
	}
	return report
}

func reportsGauges(row *fleet.Usage) bool {
	return row.Running.State != fleet.Absent || row.Waiting.State != fleet.Absent || row.KV.State != fleet.Absent
}

// joinUsages returns the rows of the pods of one replica as one row: counts are added up, KV cache
// use and latencies are the largest. A count that one of them lacks is not known.
func joinUsages(pod string, rows []*fleet.Usage) *fleet.Usage {
	all := *rows[0]
	all.Pod = pod
	for _, row := range rows[1:] {
		all.Calibration = joinMeans(all.Calibrating(), row.Calibrating())
		if row.Time.Before(all.Time) {
			all.Time = row.Time
		}
		all.Scrapes = min(all.Scrapes, row.Scrapes)
		all.ScrapedTwice = all.ScrapedTwice || row.ScrapedTwice
		all.Asleep = all.Asleep || row.Asleep
		for _, of := range []func(*fleet.Usage) *fleet.Reading{
			func(u *fleet.Usage) *fleet.Reading { return &u.Running },
			func(u *fleet.Usage) *fleet.Reading { return &u.Waiting },
			func(u *fleet.Usage) *fleet.Reading { return &u.KVTokens },
			func(u *fleet.Usage) *fleet.Reading { return &u.FirstTokens },
			func(u *fleet.Usage) *fleet.Reading { return &u.WaitingGrowth },
			func(u *fleet.Usage) *fleet.Reading { return &u.LeastWaiting },
			func(u *fleet.Usage) *fleet.Reading { return &u.MeanRate },
			func(u *fleet.Usage) *fleet.Reading { return &u.MeanRunning },
			func(u *fleet.Usage) *fleet.Reading { return &u.PeakRate },
			func(u *fleet.Usage) *fleet.Reading { return &u.PeakThroughput },
			func(u *fleet.Usage) *fleet.Reading { return &u.Progress },
		} {
			*of(&all) = joinReadings(*of(&all), *of(row), func(a, b float64) float64 { return a + b })
		}
		for _, of := range []func(*fleet.Usage) *fleet.Reading{
			func(u *fleet.Usage) *fleet.Reading { return &u.KV },
			func(u *fleet.Usage) *fleet.Reading { return &u.MeanKV },
		} {
			*of(&all) = joinReadings(*of(&all), *of(row), func(a, b float64) float64 { return max(a, b) })
		}
		// a pod without requests has no latency
		all.ITL, all.MeanITL = slower(all.ITL, row.ITL), slower(all.MeanITL, row.MeanITL)
		all.MeanPrefill, all.ITLFloor = slower(all.MeanPrefill, row.MeanPrefill), slower(all.ITLFloor, row.ITLFloor)
	}
	return &all
}

// joinReadings joins two readings. It is known only if both are; of two states that are not, it
// has the worse one.
func joinReadings(a, b fleet.Reading, join func(a, b float64) float64) fleet.Reading {
	for _, state := range []fleet.ReadingState{fleet.NaN, fleet.Stale, fleet.Absent} {
		if a.State == state || b.State == state {
			return fleet.Reading{State: state}
		}
	}
	both := fleet.Observed(join(a.Value, b.Value))
	if both.State == fleet.Present && (a.State == fleet.Reset || b.State == fleet.Reset) {
		both.State = fleet.Reset
	}
	return both
}

// joinMeans joins the means that calibrate the profile of a replica.
func joinMeans(a, b fleet.Means) fleet.Means {
	sum := func(a, b float64) float64 { return a + b }
	most := func(a, b float64) float64 { return max(a, b) }
	return fleet.Means{
		Rate: joinReadings(a.Rate, b.Rate, sum), Running: joinReadings(a.Running, b.Running, sum), KV: joinReadings(a.KV, b.KV, most),
		ITL: slower(a.ITL, b.ITL), Prefill: slower(a.Prefill, b.Prefill),
		LongKV: joinReadings(a.LongKV, b.LongKV, most), LongRunning: joinReadings(a.LongRunning, b.LongRunning, sum),
	}
}

// slower returns the longer of two latencies, or the one that is known.
func slower(a, b fleet.Reading) fleet.Reading {
	one, known := a.Known()
	if other, otherKnown := b.Known(); otherKnown && (!known || other > one) {
		return b
	}
	return a
}
