package inventory

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

// wvaAnnotations returns the annotations of WVA; nil if there are none.
func wvaAnnotations(annotations map[string]string) map[string]string {
	kept := maps.Clone(annotations)
	maps.DeleteFunc(kept, func(name, _ string) bool { return !strings.HasPrefix(name, scaledobject.AnnotationPrefix) })
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// declaration is an object whose annotations declare a dry-run variant.
type declaration struct {
	rank   int // orders two declarations of the same target
	name   Key
	object scaledobject.Object // in the form of a ScaledObject
}

// The ranks: the object nearest to the replicas comes first.
const (
	rankWorkload = iota
	rankScaledObject
	rankHPA
)

// compareDeclarations orders by rank, then the older first, then by name.
func compareDeclarations(a, b declaration) int {
	return cmp.Or(
		cmp.Compare(a.rank, b.rank),
		a.object.Metadata.CreationTimestamp.Compare(b.object.Metadata.CreationTimestamp),
		cmp.Compare(a.name.Namespace, b.name.Namespace), cmp.Compare(a.name.Name, b.name.Name),
		cmp.Compare(a.name.Kind, b.name.Kind), cmp.Compare(a.name.Group, b.name.Group),
	)
}

// readDryRun adds the variants that annotations declare. A scaled variant comes before them: its
// target and its name have no other variant.
func (o Objects) readDryRun(t *Tables, c completion) {
	declarations := o.declarations(t)
	if len(declarations) == 0 {
		return
	}
	owners := claimsOf(t.Variants)
	for _, d := range declarations {
		v, err := scaledobject.ReadDryRun(d.object)
		if problem, claimed := owners.claim(v, d.name); claimed {
			t.Problems = append(t.Problems, problem)
			continue
		}
		if err != nil {
			problems := definitionProblems(d.name.String(), err)
			t.Problems = append(t.Problems, problems...)
			v.Invalid = invalid(err)
		}
		v.Findings = scaledobject.Lint(d.object)
		t.resolveTarget(&v, origin{d.name, d.object}, c)
		t.Variants = append(t.Variants, v)
	}
	slices.SortStableFunc(t.Variants, func(a, b fleet.Variant) int { return a.ID.Compare(b.ID) })
}

// claims are the owners of targets and of names.
type claims struct {
	targets map[Key]claimant
	names   map[fleet.VariantID]claimant
}

// claimant is the object that defines a variant.
type claimant struct {
	name   string
	scales bool // it is a ScaledObject with a WVA trigger
}

// claimsOf returns the claims of the scaled variants.
func claimsOf(scaled []fleet.Variant) claims {
	c := claims{map[Key]claimant{}, map[fleet.VariantID]claimant{}}
	for _, v := range scaled {
		who := claimant{ScaledObjectKey(v.ID.Namespace, v.ID.Name).String(), true}
		if v.Target == (fleet.TargetID{}) {
			who.name = scaledJobKey(v.ID.Namespace, v.ID.Name).String()
		}
		c.names[v.ID] = who
		c.targets[TargetKey(v.Target)] = who
	}
	return c
}

// claim adds the declaration of an object, or returns why the declaration is ignored.
func (c claims) claim(v fleet.Variant, by Key) (Problem, bool) {
	key := TargetKey(v.Target)
	owner, targetClaimed := c.targets[key]
	namesake, nameClaimed := c.names[v.ID]
	p := Problem{Object: by.String(), Text: "its annotations declare a variant, which is ignored: "}
	switch {
	case targetClaimed && owner.scales && v.Target.Name != "":
		p.Text += owner.name + " scales " + v.Target.String() + " already"
		p.Remedy = "remove the annotations " + scaledobject.AnnotationPrefix + "*"
	case targetClaimed && v.Target.Name != "":
		p.Text += owner.name + " declares a variant of " + v.Target.String() + " too, and comes first"
		p.Remedy = "remove the annotations " + scaledobject.AnnotationPrefix + "* from one of the two"
	case nameClaimed:
		p.Text += namesake.name + " defines a variant of the same name"
		p.Remedy = "declare it on another object: the workload, its ScaledObject or its HorizontalPodAutoscaler"
	default:
		c.targets[key], c.names[v.ID] = claimant{name: by.String()}, claimant{name: by.String()}
		return Problem{}, false
	}
	return p, true
}

// declarations returns the objects whose annotations declare a variant, the first of a target
// first. Such annotations on a ScaledObject with a WVA trigger are a problem.
func (o Objects) declarations(t *Tables) []declaration {
	var found []declaration
	for _, object := range o.ScaledObjects {
		if !scaledobject.Declares(object.Metadata.Annotations) {
			continue
		}
		name := ScaledObjectKey(object.Metadata.Namespace, object.Metadata.Name)
		if object.IsOurs() {
			t.Problems = append(t.Problems, Problem{
				Object: name.String(), Text: "its annotations declare a variant, which is ignored: its WVA trigger scales the target already",
				Remedy: "remove the annotations " + scaledobject.AnnotationPrefix + "*",
			})
			continue
		}
		object.Kind = ""
		found = append(found, declaration{rankScaledObject, name, object})
	}
	for _, hpa := range o.HPAs {
		// KEDA copies a ScaledObject's annotations to its HPA.
		if len(hpa.MadeFor) == 0 && scaledobject.Declares(hpa.Annotations) {
			found = append(found, declaration{rankHPA, HPAKey(hpa.Namespace, hpa.Name), hpa.object()})
		}
	}
	found = append(found, o.declaredWorkloads()...)
	slices.SortFunc(found, compareDeclarations)
	return found
}

// declaredWorkloads returns the workloads whose annotations declare a variant, each with the bounds
// of its current autoscaler.
func (o Objects) declaredWorkloads() (found []declaration) {
	for _, target := range o.Targets {
		// A Deployment's annotations are copied to its ReplicaSets.
		if target.Controller == (fleet.TargetID{}) && scaledobject.Declares(target.Annotations) {
			found = append(found, declaration{rankWorkload, TargetKey(target.ID), target.object()})
		}
	}
	if len(found) == 0 {
		return nil
	}
	bounds := o.bounds()
	for i := range found {
		spec, own := &found[i].object.Spec, bounds[found[i].name].object.Spec
		spec.MinReplicaCount, spec.MaxReplicaCount, spec.IdleReplicaCount = own.MinReplicaCount, own.MaxReplicaCount, own.IdleReplicaCount
	}
	return found
}

// bounds returns the current autoscaler of each target: a ScaledObject, else an HPA, of several the
// oldest.
func (o Objects) bounds() map[Key]declaration {
	bounds := map[Key]declaration{}
	note := func(key Key, d declaration) {
		if other, found := bounds[key]; !found || compareDeclarations(d, other) < 0 {
			bounds[key] = d
		}
	}
	for _, object := range o.ScaledObjects {
		note(TargetKey(object.Target()), declaration{rankScaledObject, ScaledObjectKey(object.Metadata.Namespace, object.Metadata.Name), object})
	}
	for _, hpa := range o.HPAs {
		note(TargetKey(hpa.Target), declaration{rankHPA, HPAKey(hpa.Namespace, hpa.Name), hpa.object()})
	}
	return bounds
}

// object returns the HPA in the form of a ScaledObject.
func (h HPA) object() scaledobject.Object {
	return scaledobject.Object{
		Metadata: scaledobject.Meta{Name: h.Name, Namespace: h.Namespace, CreationTimestamp: h.Created, Annotations: h.Annotations},
		Spec: scaledobject.Spec{
			ScaleTargetRef:  scaledobject.TargetRef{APIVersion: h.Target.APIVersion, Kind: h.Target.Kind, Name: h.Target.Name},
			MinReplicaCount: h.Min, MaxReplicaCount: h.Max,
		},
	}
}

// object returns the workload in the form of a ScaledObject that scales it.
func (t Target) object() scaledobject.Object {
	return scaledobject.Object{
		Metadata: scaledobject.Meta{Name: t.ID.Name, Namespace: t.ID.Namespace, CreationTimestamp: t.Created, Annotations: t.Annotations},
		Spec:     scaledobject.Spec{ScaleTargetRef: scaledobject.TargetRef{APIVersion: t.ID.APIVersion, Kind: t.ID.Kind, Name: t.ID.Name}},
	}
}
