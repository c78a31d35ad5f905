package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/solver"
)

// unservedText returns a shortfall as text: at least 1 %.
func unservedText(short float64) string { return fmt.Sprintf("%.0f%% unserved", max(1, 100*short)) }

// nextBest returns the second best mix of a model; "" if there is none.
func (z *sizedModel) nextBest(why *solver.Reason) string {
	if len(why.RunnerUp) == 0 {
		return ""
	}
	line := append(make([]byte, 0, 128), "next best mix: "...)
	for i, count := range why.RunnerUp {
		if i > 0 {
			line = append(line, " and "...)
		}
		line = strconv.AppendInt(line, int64(count.Replicas), 10)
		line = append(append(line, " x "...), z.candidates[count.Option-z.candidates[0].option].ID.Name...)
	}
	line = append(line, " at "...)
	if !math.Signbit(why.Extra) {
		line = append(line, '+')
	}
	text := string(append(strconv.AppendFloat(line, why.Extra, 'f', 2, 64), " an hour"...))
	if why.Short > tiny {
		text += fmt.Sprintf(", %.0f%% unserved", 100*why.Short)
	}
	if why.Scarce {
		text += ", on contended accelerators"
	}
	return text
}

// stuckText returns the stuck replicas as text.
func (v *variant) stuckText() string {
	return fmt.Sprintf("%s a queue and made no progress for the whole peak window: %s",
		countOf(v.stuck, "replica has", "replicas have"), fewNames(v.stuckPods))
}

// late returns the number of overdue replicas as text.
func (v *variant) late() string {
	if v.withoutNode > 0 && v.withoutNode == v.overdue+v.takenBack {
		return fmt.Sprintf("%s without a node and not counted as capacity", countOf(v.withoutNode, "replica", "replicas"))
	}
	return fmt.Sprintf("%s not ready %v after creation and not counted as capacity",
		countOf(v.overdue+v.takenBack, "replica", "replicas"), overdue*v.startup)
}

// notStartingText returns why no further replicas are started.
func (v *variant) notStartingText() string {
	if v.withoutNode == 0 {
		return countOf(v.overdue, "replica is", "replicas are") + " not ready"
	}
	lacks := cmp.Or(string(v.accelerator), "node")
	if v.notAdmitted == v.withoutNode {
		lacks = "quota"
	}
	text := fmt.Sprintf("no %s for %s", lacks, countOf(v.withoutNode, "Pending replica", "Pending replicas"))
	if v.waitsForQuota() {
		text = v.quotaText()
	}
	if v.takenBack > 0 {
		text += fmt.Sprintf(": 1 waits, %d taken back", v.takenBack)
	}
	return text
}

// waitingFor returns why replicas are not ready, in the words of the API server.
func (v *variant) waitingFor() string {
	if v.workload.ReplicaFailure != "" {
		return fmt.Sprintf(" (%s)", v.workload.ReplicaFailure)
	}
	var why []string
	for _, pod := range v.workload.Pods {
		if !pod.Ready && !pod.Terminating && pod.Waiting != "" {
			why = append(why, pod.Waiting)
		}
	}
	if len(why) == 0 {
		return ""
	}
	slices.Sort(why)
	return fmt.Sprintf(" (%s)", slices.Compact(why)[0])
}

// rateText returns the rate of requests of the model as text.
func (z *sizedModel) rateText() string {
	if rate, known := z.demand.arrivals.Known(); known {
		return rateNumber(rate) + " req/s"
	}
	return "request rate not known"
}

// demandText returns the demand of the model as text.
func (z *sizedModel) demandText() string {
	if z.demand.none() {
		return "0 requests"
	}
	text := z.rateText()
	switch d := z.demand; {
	case d.burst > 0:
		text += fmt.Sprintf(" (burst of %s)", rateNumber(d.burst))
	case z.expected > 0:
		text += z.risingText()
	case d.peak > 0 && z.wanted > z.latest*(1+tiny): // replicas are kept for it
		text += fmt.Sprintf(" (peak %s)", rateNumber(d.peak))
	default:
		text += d.constantText()
	}
	if z.demand.backlog > 0 {
		text += ", " + wholeNumber(z.demand.backlog) + " waiting"
	}
	return text
}

// capacityOf returns the capacity of one replica as text.
func (z *sizedModel) capacityOf(c candidate) string {
	if rate, known := z.demand.rate.Known(); known {
		return rateNumber(c.share*rate) + " req/s"
	}
	return wholeNumber(c.share*z.demand.inFlight) + " requests in flight"
}

// textsOf joins the texts of bounds.
func textsOf(bounds []bound) string {
	texts := make([]string, len(bounds))
	for i, b := range bounds {
		texts[i] = b.text
	}
	return strings.Join(texts, ", ")
}

// shortest returns the first of the texts that is short enough for a reason, else the last.
func shortest(texts ...string) string {
	for _, text := range texts {
		if utf8.RuneCountInString(text) <= fleet.MaxReasonText {
			return text
		}
	}
	return texts[len(texts)-1]
}

// rateNumber returns a rate in three digits, or all digits before the point.
func rateNumber(rate float64) string {
	if rate >= 1000 && rate < 1e7 {
		return fmt.Sprintf("%.0f", rate)
	}
	return strconv.FormatFloat(min(rate, 1e12), 'g', 3, 64)
}

// wholeNumber returns a number of requests as text, in three digits if it is beyond any real one.
func wholeNumber(n float64) string {
	if n < 1e7 {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.3g", min(n, 1e12))
}

func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// reason returns a reason of one line: fact, limit, action, with numbers and units first.
func reason(code fleet.Code, format string, args ...any) fleet.Reason {
	return fleet.Reason{Code: code, Text: fmt.Sprintf(format, args...)}
}

// problemReason returns the reason of a problem.
func problemReason(code fleet.Code, p fleet.Problem) fleet.Reason {
	return fleet.Reason{Code: code, Text: p.Text}.With(fleet.DetailRemedy, p.Remedy)
}

// invalidDefinition returns the reason of validation errors, at least one. The first is the line of
// the reason, the others are its cause.
func invalidDefinition(problems []fleet.Problem) fleet.Reason {
	why := problemReason(fleet.CodeInvalidDefinition, problems[0])
	if len(problems) == 1 {
		return why
	}
	var more []string
	for _, p := range problems[1:] {
		more = append(more, p.String())
	}
	why.Text = fmt.Sprintf("%d validation errors, the first: %s", len(problems), why.Text)
	return why.With(fleet.DetailCause, strings.Join(more, ". "))
}
