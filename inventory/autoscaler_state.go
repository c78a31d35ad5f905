package inventory

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

// autoscalerGrace is how long KEDA and the HPA controller may need to follow a change. A shorter
// interruption is not reported.
const autoscalerGrace = 2 * time.Minute

// maxHPAMessage is the longest message of an HPA that is quoted, in bytes.
const maxHPAMessage = 240

// hpaCondition is a condition of an HPA.
type hpaCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// inactive returns the first of the conditions that keeps an HPA from scaling; false if there is
// none. At zero replicas an HPA is disabled as a rule: KEDA starts the first replica.
func inactive(conditions []hpaCondition) (hpaCondition, bool) {
	for _, name := range []string{"AbleToScale", "ScalingActive"} {
		for _, c := range conditions {
			if c.Type == name && c.Status == "False" && c.Reason != "ScalingDisabled" {
				return c, true
			}
		}
	}
	return hpaCondition{}, false
}

// hpaMessage returns the message of a condition as one short line. The HPA controller lists the
// HPAs of an ambiguous selector in any order; here they are sorted, without their common namespace.
func hpaMessage(c hpaCondition) string {
	text := strings.Join(strings.Fields(c.Message), " ")
	head, list, found := strings.Cut(text, " HPAs: [")
	if found && c.Reason == string(fleet.CodeAmbiguousSelector) {
		names := strings.Fields(strings.TrimSuffix(list, "]"))
		for i, name := range names {
			names[i] = name[strings.LastIndexByte(name, '/')+1:]
		}
		slices.Sort(names)
		text = head + " HPAs: " + strings.Join(names, ", ")
	}
	if len(text) <= maxHPAMessage {
		return text
	}
	end := maxHPAMessage
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// autoscaler returns the state of an HPA that KEDA made.
func (h HPA) autoscaler() fleet.Autoscaler {
	a := fleet.Autoscaler{Observed: h.Observed}
	if h.Inactive == "" {
		return a
	}
	detail := h.Inactive
	if h.Message != "" {
		detail += ": " + h.Message
	}
	a.Code = fleet.CodeHPAInactive
	a.Text = "HPA " + h.Name + " does not scale (" + detail + "); check the metrics API and the target with kubectl describe hpa " + h.Name
	if h.Inactive == string(fleet.CodeAmbiguousSelector) {
		a.Code = fleet.CodeAmbiguousSelector
		a.Text = "HPA " + h.Name + " does not scale (" + detail + "); give the pods of each workload labels and a selector of their own"
	}
	return a
}

// missingHPA returns the state of a ScaledObject without an HPA.
func missingHPA(object *scaledobject.Object) fleet.Autoscaler {
	text := "KEDA made no HPA for the ScaledObject"
	if object.Status.HPAName != "" {
		text = "HPA " + object.Status.HPAName + " of the ScaledObject does not exist"
	}
	return fleet.Autoscaler{
		Observed: true, Code: fleet.CodeHPAMissing,
		Text: text + "; check that keda-operator runs, and the condition Ready of the ScaledObject",
	}
}

// hasStatus reports whether the status of an object and HPAs were read. Manifests that people write
// have neither.
func (o Objects) hasStatus(object *scaledobject.Object) bool {
	return len(o.HPAs) > 0 && (object.Status.HPAName != "" || len(object.Status.Conditions) > 0)
}

// markAutoscalers sets the state of the HPA of each scaled variant whose HPAs were read. KEDA makes
// none for a paused ScaledObject, for a ScaledJob or for a target that does not exist.
func (o Objects) markAutoscalers(t *Tables, isRead func(*scaledobject.Object) bool) {
	type name struct{ namespace, name string }
	objects := make(map[name]*scaledobject.Object, len(o.ScaledObjects))
	for i := range o.ScaledObjects {
		identity := &o.ScaledObjects[i].Metadata
		objects[name{identity.Namespace, identity.Name}] = &o.ScaledObjects[i]
	}
	made, named := make(map[name]HPA, len(o.HPAs)), make(map[name]HPA, len(o.HPAs))
	for _, hpa := range sorted(o.HPAs, func(a, b HPA) int { return cmp.Compare(b.Name, a.Name) }) {
		named[name{hpa.Namespace, hpa.Name}] = hpa
		for _, owner := range hpa.MadeFor {
			made[name{hpa.Namespace, owner}] = hpa
		}
	}
	exists := make(map[fleet.TargetID]bool, len(t.Workloads))
	for _, w := range t.Workloads {
		exists[w.ID] = true
	}
	for i := range t.Variants {
		v := &t.Variants[i]
		v.Autoscaler = fleet.Autoscaler{}
		object, scaled := objects[name{v.ID.Namespace, v.ID.Name}]
		if !scaled || v.DryRun || v.Pause.All || !exists[v.Target] || !isRead(object) {
			continue
		}
		hpa, found := named[name{v.ID.Namespace, object.Status.HPAName}]
		if !found {
			hpa, found = made[name{v.ID.Namespace, v.ID.Name}]
		}
		if found {
			v.Autoscaler = hpa.autoscaler()
		} else {
			v.Autoscaler = missingHPA(object)
		}
	}
}

// unfollowed is a number that no HPA follows.
type unfollowed struct {
	state fleet.Autoscaler
	since time.Time
}

// confirmAutoscalers removes the states that are younger than autoscalerGrace, and returns the time
// until the next of them is old enough; zero if there is none. At the first rebuild an HPA that is
// missing counts as missing since the ScaledObject was created. While the cause stays, the text of
// the first message does too: later ones differ in port numbers and the like.
func (c *Cluster) confirmAutoscalers(variants []fleet.Variant, now time.Time, isFirst bool) (next time.Duration) {
	current := map[fleet.VariantID]unfollowed{}
	for i := range variants {
		v := &variants[i]
		if v.Autoscaler.Code == "" {
			continue
		}
		u := unfollowed{v.Autoscaler, now}
		if before, known := c.unfollowed[v.ID]; known {
			u = before.next(v.Autoscaler)
		} else if isFirst && u.state.Code == fleet.CodeHPAMissing {
			u.since = earlier(v.Created, now)
		}
		current[v.ID], v.Autoscaler = u, u.state
		if wait := u.since.Add(autoscalerGrace).Sub(now); wait > 0 {
			v.Autoscaler = fleet.Autoscaler{}
			if next == 0 || wait < next {
				next = wait
			}
		}
	}
	c.unfollowed = current
	return next
}

// earlier returns the first of two times. The clock of the API server may be ahead.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// next returns the same number with its present state.
func (u unfollowed) next(state fleet.Autoscaler) unfollowed {
	cause := func(text string) string { head, _, _ := strings.Cut(text, ": "); return head }
	if state.Code != u.state.Code || cause(state.Text) != cause(u.state.Text) {
		u.state = state
	}
	return u
}
