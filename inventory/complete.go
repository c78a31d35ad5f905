package inventory

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/wva-project/wva/engine"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

// The keys of a definition whose absence is not the same as their default.
const (
	keyGPUs       = "gpusPerReplica"
	keyEngine     = "engine"
	keyRole       = "role"
	keyServedName = "servedModelName"
)

// labelRole is the label of pods by which llm-d knows their role.
const labelRole = "llm-d.ai/role"

// TemplateLabels returns the labels of pod templates that are read.
func TemplateLabels() []string { return []string{labelRole, engine.EngineTypeLabel, LabelQueueName} }

// completion fills in the fields that the definitions of variants leave out, from their targets. A
// definition comes first, then the command line of the engine, then the labels of the pod template.
type completion struct {
	targets map[Key]Target
	options Options
	// roles are those of the labels, of variants whose definition has none
	roles map[fleet.VariantID]fleet.Role
}

func newCompletion(targets map[Key]Target, options Options) completion {
	return completion{targets, options, map[fleet.VariantID]fleet.Role{}}
}

// complete fills in the fields of a variant: the engine, the accelerator and how many of them a
// replica needs, the served name and the adapters. Without a template the number is left to
// countGPUs, as it is if its claims do not state one. The role of the label is noted for useRoles.
func (c completion) complete(v *fleet.Variant, target Target, object scaledobject.Object) {
	states := func(key string) bool { return states(v, object, key) }
	target.completeEngine(v, states(keyEngine))
	if role, labelled := target.labelledRole(v, states(keyRole)); labelled {
		c.roles[v.ID] = role
	}
	if v.Accelerator == "" {
		v.Accelerator = c.options.selected(target.Template)
	}
	names := target.servedNames(v.Engine)
	if len(names) > 0 && names[0] != v.Model.Name && !states(keyServedName) {
		v.ServedName = names[0]
	}
	if len(v.Adapters) == 0 {
		v.Adapters = adaptersOf(target.Template, v.Engine, names)
	}
	if states(keyGPUs) {
		return
	}
	gpus := target.templateGPUs()
	switch {
	case target.hasOpenClaims:
		v.GPUsPerReplica = 0
	case gpus > 0 || target.Template == nil:
		v.GPUsPerReplica = gpus
	}
}

// states reports whether the definition of a variant has a key: its trigger, or the annotations of
// a dry run.
func states(v *fleet.Variant, object scaledobject.Object, key string) bool {
	if v.DryRun {
		return scaledobject.HasKey(object.Metadata.Annotations, key)
	}
	return hasKey(object, key)
}

// LabelFindings returns the findings of the labels of the pod template, for a variant that an
// object defines.
func (t Target) LabelFindings(v fleet.Variant, object scaledobject.Object) []fleet.Finding {
	v.Findings = nil
	t.completeEngine(&v, states(&v, object, keyEngine))
	t.labelledRole(&v, states(&v, object, keyRole))
	return v.Findings
}

// completeEngine sets the engine to the one of the command line, else of the label, unless the
// definition states one. A label that says otherwise is a finding.
func (t Target) completeEngine(v *fleet.Variant, stated bool) {
	shown, isShown := t.engineShown()
	source := keyEngine + " of the definition"
	if !stated && isShown {
		v.Engine, source = shown, "its command line"
	}
	value, labelled := t.label(engine.EngineTypeLabel)
	if !labelled {
		return
	}
	at := slices.IndexFunc(engines, func(e engine.Engine) bool {
		return value == string(e.Name) || e.Alias != "" && value == e.Alias
	})
	switch {
	case at < 0:
		names := make([]string, len(engines))
		for i, e := range engines {
			names[i] = string(e.Name)
		}
		addLabelFinding(v, unknownLabel(engine.EngineTypeLabel, value, names))
	case !stated && !isShown:
		v.Engine = engines[at].Name
	case engines[at].Name != v.Engine:
		addLabelFinding(v, contradictedLabel(engine.EngineTypeLabel, value, source, string(v.Engine)))
	}
}

// engineShown returns the engine that the command line of the pod starts; false if it starts none
// that is known, or several.
func (t Target) engineShown() (name fleet.Engine, isShown bool) {
	if t.Template == nil {
		return "", false
	}
	for _, container := range t.Template.Spec.Containers {
		words := commandLine(container, "")
		for i := range engines {
			switch {
			case !starts(words, engines[i].Programs):
			case isShown && engines[i].Name != name:
				return "", false
			default:
				name, isShown = engines[i].Name, true
			}
		}
	}
	return name, isShown
}

// starts reports whether the words of a command line start one of the programs.
func starts(words, programs []string) bool {
	for i, word := range words {
		word = path.Base(word)
		next := ""
		if i+1 < len(words) {
			next = " " + words[i+1]
		}
		if slices.Contains(programs, word) || slices.Contains(programs, word+next) {
			return true
		}
	}
	return false
}

// labelledRole returns the role of the pod template's label, unless the definition states one. A
// label that says otherwise, or whose role is not known, is a finding.
func (t Target) labelledRole(v *fleet.Variant, stated bool) (fleet.Role, bool) {
	value, labelled := t.label(labelRole)
	if !labelled {
		return "", false
	}
	var role fleet.Role
	switch value {
	case "prefill", "encode-prefill":
		role = fleet.RolePrefill
	case "decode":
		role = fleet.RoleDecode
	case "both", "prefill-decode", "encode-prefill-decode":
		role = fleet.RoleBoth
	default:
		addLabelFinding(v, unknownLabel(labelRole, value, []string{"prefill", "decode", "both"}))
		return "", false
	}
	if stated && role != v.Role {
		addLabelFinding(v, contradictedLabel(labelRole, value, keyRole+" of the definition", string(v.Role)))
	}
	return role, !stated
}

// label returns a label of the pod template; false if it is absent or empty.
func (t Target) label(name string) (string, bool) {
	if t.Template == nil {
		return "", false
	}
	value := t.Template.Labels[name]
	return value, value != ""
}

// servedNames returns the names under which the engine's arguments serve the model; the first is
// the one in its metrics. It returns none if they set none, or if one has a variable whose value is
// not known.
func (t Target) servedNames(name fleet.Engine) []string {
	at := slices.IndexFunc(engines, func(e engine.Engine) bool { return e.Name == name })
	if t.Template == nil || at < 0 {
		return nil
	}
	const unknown = "\x00"
	flags := engines[at].Flag(engine.ServedNames)
	for _, container := range t.Template.Spec.Containers {
		names := valuesOf(commandLine(container, unknown), flags)
		if slices.ContainsFunc(names, func(name string) bool {
			return name == "" || len(name) > longestName || strings.ContainsFunc(name, unicode.IsControl)
		}) {
			return nil
		}
		if len(names) > 0 {
			return names
		}
	}
	return nil
}

// useRoles gives variants the roles of their labels if those of the model tell prefill from decode:
// both occur, or a definition states one. Charts label replicas decode that do both: without a
// prefill replica they have to.
func (c completion) useRoles(variants []fleet.Variant) {
	if len(c.roles) == 0 {
		return
	}
	type group struct {
		model  fleet.ModelID
		dryRun bool
	}
	type found struct{ prefill, decode, stated bool }
	models := map[group]found{}
	for _, v := range variants {
		labelled, isLabelled := c.roles[v.ID]
		role := cmp.Or(labelled, v.Role)
		f := models[group{v.Model, v.DryRun}]
		f.prefill = f.prefill || role == fleet.RolePrefill
		f.decode = f.decode || role == fleet.RoleDecode
		f.stated = f.stated || !isLabelled && role != fleet.RoleBoth
		models[group{v.Model, v.DryRun}] = f
	}
	for i := range variants {
		v := &variants[i]
		role, isLabelled := c.roles[v.ID]
		if f := models[group{v.Model, v.DryRun}]; isLabelled && (f.stated || f.prefill && f.decode) {
			v.Role = role
		}
	}
}

func unknownLabel(label, value string, known []string) fleet.Finding {
	return fleet.Finding{
		Code:   fleet.CodeLabelIgnored,
		Text:   fmt.Sprintf("label %s of the pod template, %.64q, is not known: it is not used", label, value),
		Remedy: "write " + strings.Join(known[:len(known)-1], ", ") + " or " + known[len(known)-1] + ", or remove it",
	}
}

func contradictedLabel(label, value, source, used string) fleet.Finding {
	return fleet.Finding{
		Code:   fleet.CodeLabelIgnored,
		Text:   fmt.Sprintf("label %s of the pod template, %q, contradicts %s, %q, which is used", label, value, source, used),
		Remedy: "correct one of the two",
	}
}

func addLabelFinding(v *fleet.Variant, f fleet.Finding) {
	v.Findings = fleet.SortFindings(append(slices.Clip(v.Findings), f))
}
