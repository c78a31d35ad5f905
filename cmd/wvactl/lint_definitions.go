package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/scaledobject"
)

// definition is an object that defines a variant.
type definition struct {
	at      place
	rank    definitionRank
	created time.Time
	object  scaledobject.Object // in the form of a ScaledObject
	variant fleet.Variant
	err     error
}

// definitionRank orders two definitions of one target or of one name, as the server does.
type definitionRank int

// The ranks: a WVA trigger precedes all annotations.
const (
	rankTrigger definitionRank = iota
	rankWorkload
	rankScaledObject
	rankHPA
)

// scales reports whether the definition is a WVA trigger; if not, it is a dry run.
func (d definition) scales() bool { return d.rank == rankTrigger }

// compareDefinitions orders by rank, then annotations by age and by name. Triggers keep the order
// of the files.
func compareDefinitions(a, b definition) int {
	if order := cmp.Compare(a.rank, b.rank); order != 0 || a.scales() {
		return order
	}
	return cmp.Or(a.created.Compare(b.created), a.variant.ID.Compare(b.variant.ID), cmp.Compare(a.at.object, b.at.object))
}

// definitionsIn returns the definitions of one file, and adds findings for the annotations of
// objects that have a WVA trigger.
func (l *linter) definitionsIn(file string, objects inventory.Objects) []definition {
	var found []definition
	for _, o := range slices.Concat(objects.ScaledObjects, objects.ScaledJobs) {
		at := place{file, cmp.Or(o.Kind, "ScaledObject") + " " + o.Metadata.Namespace + "/" + o.Metadata.Name}
		annotated := scaledobject.Declares(o.Metadata.Annotations)
		switch {
		case o.IsOurs():
			v, err := scaledobject.Read(o)
			found = append(found, definition{at, rankTrigger, o.Metadata.CreationTimestamp, o, v, err})
			if annotated {
				l.add(at, severityFinding, ignored(fleet.CodeDuplicateTarget, "its WVA trigger scales the target already", "remove the annotations wva.dev/*"))
			}
		case annotated:
			found = append(found, dryRun(at, rankScaledObject, o))
		}
	}
	for _, t := range objects.Targets {
		// A Deployment's annotations are copied to its ReplicaSets.
		if t.Controller == (fleet.TargetID{}) && scaledobject.Declares(t.Annotations) {
			found = append(found, dryRun(place{file, t.ID.String()}, rankWorkload, annotatedObject(t.ID, t.ID, t.Created, t.Annotations)))
		}
	}
	for _, h := range objects.HPAs {
		// KEDA copies a ScaledObject's annotations to its HPA.
		if len(h.MadeFor) == 0 && scaledobject.Declares(h.Annotations) {
			id := fleet.TargetID{Namespace: h.Namespace, Kind: "HorizontalPodAutoscaler", Name: h.Name}
			found = append(found, dryRun(place{file, id.String()}, rankHPA, annotatedObject(id, h.Target, h.Created, h.Annotations)))
		}
	}
	return found
}

// dryRun returns the definition of the annotations of an object.
func dryRun(at place, rank definitionRank, o scaledobject.Object) definition {
	v, err := scaledobject.ReadDryRun(o)
	return definition{at, rank, o.Metadata.CreationTimestamp, o, v, err}
}

// annotatedObject returns an object with annotations in the form of a ScaledObject.
func annotatedObject(id, target fleet.TargetID, created time.Time, annotations map[string]string) scaledobject.Object {
	return scaledobject.Object{
		Metadata: scaledobject.Meta{Namespace: id.Namespace, Name: id.Name, CreationTimestamp: created, Annotations: annotations},
		Spec:     scaledobject.Spec{ScaleTargetRef: scaledobject.TargetRef{APIVersion: target.APIVersion, Kind: target.Kind, Name: target.Name}},
	}
}

// claims are the definitions that own a target or a name.
type claims struct {
	targets map[fleet.TargetID]definition
	names   map[fleet.VariantID]definition
}

// claim adds a definition. If an earlier one has its target or its name, the definition is not
// added, and claim returns the problem: an error for two objects of one name that the server cannot
// tell apart, and a finding for annotations that it ignores. Two triggers may have one target: the
// plan reports them.
func (c claims) claim(d definition) (fleet.Finding, severity, bool) {
	target := d.variant.Target.Unversioned()
	owner, targetClaimed := c.targets[target]
	namesake, nameClaimed := c.names[d.variant.ID]
	switch {
	case nameClaimed && (d.scales() || namesake.at.object == d.at.object):
		return fleet.Finding{
			Code: fleet.CodeInvalidDefinition, Text: "the name is that of " + namesake.at.object + " in " + namesake.at.file + " too", Remedy: "rename or remove one of the two",
		}, severityError, true
	case targetClaimed && !d.scales() && owner.scales():
		return ignored(fleet.CodeDuplicateTarget, owner.at.object+" scales "+d.variant.Target.String()+" already", "remove the annotations wva.dev/*"), severityFinding, true
	case targetClaimed && !d.scales():
		return ignored(fleet.CodeDuplicateTarget, owner.at.object+" declares a variant of "+d.variant.Target.String()+" too, and comes first",
			"remove the annotations wva.dev/* from one of the two"), severityFinding, true
	case nameClaimed:
		return ignored(fleet.CodeInvalidDefinition, namesake.at.object+" defines a variant of the same name",
			"declare it on another object: the workload, its ScaledObject or its HorizontalPodAutoscaler"), severityFinding, true
	}
	c.names[d.variant.ID] = d
	if target.Name != "" && !targetClaimed {
		c.targets[target] = d
	}
	return fleet.Finding{}, "", false
}

// ignored returns the finding about annotations that the server ignores.
func ignored(code fleet.Code, cause, remedy string) fleet.Finding {
	return fleet.Finding{Code: code, Text: "its annotations declare a variant, which is ignored: " + cause, Remedy: remedy}
}
