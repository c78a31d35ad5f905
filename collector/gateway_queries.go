package collector

import (
	"fmt"
	"slices"

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
	return fmt.Sprintf("group by (%s) (%s)", e.byModel, e.labelled(either(met...)))
}

// queries returns the queries of one cycle about gateways.
func (e gatewayExpressions) queries() []query {
	return []query{
		{"gateway", e.gatewayQuery(), e.options.Interval, model.ValVector},
		{"gateway history", e.historyQuery(), e.options.Interval, model.ValVector},
	}
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
	return e.perPod(q, func(n name) string { return e.labelled(series(n)) })
}

func (e gatewayExpressions) perGatewayModel(q quantity, series func(n name) string) string {
	return aggregate(engine.Sum, e.byModel, e.perGateway(q, series))
}

func (e gatewayExpressions) gatewayQuery() string {
	requests := e.gateways[engine.GatewayRequests]
	return either(
		tagged(gatewayRate, e.perGatewayModel(requests, e.olderRate)),
		tagged(gatewayBorn, aggregate(engine.Sum, e.byModel, e.watched(e.perGateway(requests, e.bornRate)))),
		tagged(gatewayResets, "("+e.perGatewayModel(requests, over("resets", e.options.Window))+" > 0)"),
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
	heartbeat := quantity{names: slices.Concat(e.gateways[engine.GatewayRequests].names, e.gateways[engine.GatewayQueue].names)}
	step := e.options.step(e.options.IdleWindow)
	used := slices.Concat(gaugeUsed(e.gateways[engine.GatewayQueue], step),
		e.counterMoved(e.gateways[engine.GatewayActivity], step), e.counterBorn(e.gateways[engine.GatewayActivity], step))
	arrivals := e.perGatewayModel(e.gateways[engine.GatewayRequests], over("rate", e.options.Window))
	return either(
		tagged(gatewayPeak, subquery("max_over_time", arrivals, peakWindow, peakStep)),
		tagged(gatewayTrend, subquery("deriv", arrivals, e.options.TrendWindow, e.options.step(e.options.TrendWindow))),
		tagged(gatewayPeakCovered, subquery("count_over_time", e.covered(heartbeat), peakWindow+peakStep, peakStep)),
		e.idle(idleExpression{
			heartbeat: heartbeat,
			active:    e.anyOf("> 0", used),
			parts:     [3]part{gatewayIdleKnown, gatewayIdleGap, gatewayLastActive},
		}),
	)
}
