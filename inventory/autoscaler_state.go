package inventory

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

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

// hpasRead reports whether the HPA of an object would have been read. Manifests that people write
// have neither HPAs nor a status.
func (o Objects) hpasRead(object *scaledobject.Object, options Options) bool {
	if options.HPAsRead != nil {
		return options.HPAsRead(object.Metadata.Namespace)
	}
	return len(o.HPAs) > 0 && (object.Status.HPAName != "" || len(object.Status.Conditions) > 0)
}

// markAutoscalers sets the state of the HPA of each scaled variant whose HPAs were read. KEDA makes
// none for a paused ScaledObject, for a ScaledJob or for a target that does not exist.
func (o Objects) markAutoscalers(t *Tables, options Options) {
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
		if !scaled || v.DryRun || v.Pause.All || !exists[v.Target] || !o.hpasRead(object, options) {
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
