package collector

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/wva-project/wva/engine"
)

// gatewayExpressions writes PromQL about gateways. Their model is in a label of the query's own:
// writing it over one of theirs would make series equal that differ in it.
type gatewayExpressions struct {
	expressions
	gateways dialects
}

const gatewayModelLabel = "wva_model"

func newGatewayExpressions(o Options) gatewayExpressions {
	o.ModelLabel = gatewayModelLabel
	e := gatewayExpressions{expressions: newExpressions(o), gateways: gatewayDialects()}
	e.anyOf = e.anyLabelled
	return e
}

// anyLabelled compares the series before it labels their models: gateways have few.
func (e gatewayExpressions) anyLabelled(condition string, expressions []string) string {
	var met []string
	for _, expression := range expressions {
		met = append(met, expression+" "+condition)
	}
	return fmt.Sprintf("group by (%s) (%s)", e.byModel, e.labelled(aggregate(group, e.byGateway(), either(met...))))
}

// queries returns the queries of one cycle about gateways.
func (e gatewayExpressions) queries() []query {
	return []query{
		{"gateway", e.gatewayQuery(), e.options.Interval, model.ValVector},
		{"gateway history", e.historyQuery(), e.options.Interval, model.ValVector},
	}
}

// byGateway has the labels of a gateway's series that are read. Series are joined by them before
// they are labelled: any pod may expose series with the query's own label, of which two would
// become the same, and Prometheus would answer the whole query with an error.
func (e gatewayExpressions) byGateway() string {
	return strings.Join(append([]string{e.podOnly, jobLabel, instanceLabel}, gatewayModelLabels()...), ", ")
}

// labelled gives the series the label of the model: the target's name, or else the name.
func (e gatewayExpressions) labelled(expression string) string {
	for _, label := range gatewayModelLabels() {
		expression = fmt.Sprintf(`label_replace(%s, %q, "$1", %q, "(.+)")`, expression, e.options.ModelLabel, label)
	}
	return expression
}

// perGateway returns a quantity for each gateway pod and model.
func (e gatewayExpressions) perGateway(q quantity, series func(n name) string) string {
	return e.perPod(q, func(n name) string { return e.labelled(aggregate(q.over, e.byGateway(), series(n))) })
}

func (e gatewayExpressions) perGatewayModel(q quantity, series func(n name) string) string {
	return aggregate(engine.Sum, e.byModel, e.perGateway(q, series))
}

// heartbeat is the series that a gateway has as long as it reports a model.
func (e gatewayExpressions) heartbeat() quantity {
	return quantity{names: slices.Concat(e.gateways[engine.GatewayRequests].names, e.gateways[engine.GatewayQueue].names)}
}

func (e gatewayExpressions) gatewayQuery() string {
	requests, window := e.gateways[engine.GatewayRequests], e.options.Window
	before := func(span time.Duration) func(n name) string {
		return func(n name) string {
			return fmt.Sprintf("present_over_time(%s[%s] offset %s)", n.metric, duration(span), duration(window))
		}
	}
	found := fmt.Sprintf("(%s unless %s)", e.perGateway(requests, within(window, 0)), e.perGateway(requests.as(group), before(history)))
	watched := append(e.heartbeat().each(before(e.options.gap())), before(e.options.gap())(name{metric: e.processStart()}))
	born := e.born(found, fmt.Sprintf("group by (%s) (%s)", e.podOnly, either(watched...)), e.podOnly)
	return either(
		tagged(gatewayRate, aggregate(engine.Sum, e.byModel, fmt.Sprintf("%s unless %s", e.perGateway(requests, over("rate", window)), born))),
		tagged(gatewayBorn, aggregate(engine.Sum, e.byModel, born)+" / "+seconds(window)),
		tagged(gatewayResets, "("+e.perGatewayModel(requests, over("resets", e.options.Window))+" > 0)"),
		tagged(gatewayRecent, e.perGatewayModel(requests, over("rate", e.options.recentWindow()))),
		tagged(gatewayLatest, e.perGatewayModel(requests, over("rate", e.options.recentWindow()/2))),
		e.queuesQuery(),
	)
}

// queuesQuery asks for the queues of the gateways and nothing else.
func (e gatewayExpressions) queuesQuery() string {
	oldest := e.perGateway(e.gateways[engine.GatewayQueue].as(least), sampledAt)
	return either(
		tagged(gatewayQueued, e.perGatewayModel(e.gateways[engine.GatewayQueue], itself)),
		tagged(gatewaySampled, aggregate(least, e.byModel, oldest)),
	)
}

func (e gatewayExpressions) historyQuery() string {
	peakWindow, peakStep := e.options.scaleDown, e.options.step(e.options.scaleDown)
	heartbeat := e.heartbeat()
	step := e.options.step(e.options.IdleWindow)
	used := slices.Concat(gaugeUsed(e.gateways[engine.GatewayQueue], step),
		e.counterMoved(e.gateways[engine.GatewayActivity], step), e.counterBorn(e.gateways[engine.GatewayActivity], step))
	arrivals := e.perGatewayModel(e.gateways[engine.GatewayRequests], over("rate", e.options.Window))
	history := []string{
		tagged(gatewayPeak, subquery("max_over_time", arrivals, peakWindow, peakStep)),
		tagged(gatewayPeakCovered, subquery("count_over_time", e.covered(heartbeat), peakWindow+peakStep, peakStep)),
		e.idle(idleExpression{
			heartbeat: heartbeat,
			active:    e.anyOf("> 0", used),
			parts:     [3]part{gatewayIdleKnown, gatewayIdleGap, gatewayLastActive},
		}),
	}
	if e.options.shortScaleDown > 0 {
		history = append(history, tagged(gatewayShortPeak, e.shortPeak(arrivals)))
	}
	return either(history...)
}
