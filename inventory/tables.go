package inventory

import (
	"cmp"
	"errors"
	"slices"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

// Options are the options for reading objects. The zero value uses the usual names of accelerators.
type Options struct {
	// Accelerators are the catalogue's names of accelerators, by the values of node labels and pod
	// selectors, such as "NVIDIA-A100-SXM4-40GB". A product without a row gets its usual short name
	// ("H100" for "NVIDIA-H100-80GB-HBM3"), or the label's text if it has none.
	Accelerators map[string]fleet.Accelerator
	// HPAsRead reports whether the HPAs of a namespace were read, so that a ScaledObject without
	// one has none. Default: they were if there is any, for ScaledObjects with a status.
	HPAsRead func(namespace string) bool
}

// Tables are the tables of a snapshot that follow from the objects. All are sorted; they are shared
// and must not be changed.
type Tables struct {
	// Variants are the ScaledObjects with a WVA trigger, invalid ones included; ScaledJobs with
	// one, which are unsupported; and the dry-run variants that annotations declare.
	Variants []fleet.Variant
	// Workloads are the targets of the variants. A target that was not seen has no row.
	Workloads []fleet.Workload
	// Pools are the accelerators on nodes. A node that takes no more pods (cordoned, not ready, or
	// about to go) has nothing free: its allocatable accelerators are those already allocated. A
	// pool is elastic if a node autoscaler adds nodes to it.
	Pools []fleet.Pool
	// Quotas are the quotas of pods and accelerators that limit the workloads.
	Quotas []fleet.Quota
	// ConfigMaps are those with configuration, by namespace and name.
	ConfigMaps []ConfigMap
	// Problems are the errors in reading the fleet.
	Problems []Problem
}

// Problem is an object that cannot be read as it is meant.
type Problem struct {
	// Object names it: "ScaledObject llm/chat", or "pods.yaml, document 3 (line 120)".
	Object string
	// Text states the problem, and the consequence unless that is plain.
	Text string
	// Remedy is the thing to do. It is never empty.
	Remedy string
}

// String returns the problem as one line.
func (p Problem) String() string { return p.Object + ": " + p.Text + "; " + p.Remedy }

// Missing returns the problem as a row of a snapshot. It hides no loads.
func (p Problem) Missing() fleet.Missing {
	return fleet.Missing{Source: p.Object, Reason: p.Text + "; " + p.Remedy}
}

// CompareProblems orders problems by object, then by text.
func CompareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Remedy, b.Remedy))
}

// NewProblems returns the problems of now that are not in before.
func NewProblems(before, now []Problem) []Problem {
	known := make(map[Problem]bool, len(before))
	for _, problem := range before {
		known[problem] = true
	}
	return slices.DeleteFunc(slices.Clone(now), func(problem Problem) bool { return known[problem] })
}

// Tables returns the tables of the objects. It is total: an object that cannot be used is a
// problem.
func (o Objects) Tables(options Options) Tables {
	o, devices := o.withDevices()
	targets := make(map[Key]Target, len(o.Targets))
	for _, target := range o.Targets {
		targets[TargetKey(target.ID)] = target
	}
	var t Tables
	c := newCompletion(targets, options)
	o.readVariants(&t, c)
	scaled := t.Variants
	o.readDryRun(&t, c)
	c.useRoles(t.Variants)
	pools, problems := o.pools(options, devices)
	options.canonicalNames(t.Variants, pools)
	pods, unread := podsByTarget(o.Pods, t.Variants, targets)
	pods.markOverlaps(t.Variants)
	pods.countGPUs(t.Variants, targets)
	o.nodeAccelerators(t.Variants, pods.replicas, options)
	placements := o.closeUnfit(pools, t.Variants, targets, pods)
	t.Workloads = workloads(t.Variants, targets, pods)
	for i := range t.Workloads {
		t.Workloads[i].Placement = placements[TargetKey(t.Workloads[i].ID)]
	}
	t.Quotas = o.quotas(t.Variants, targets, options)
	o.markConflicting(t.Workloads, scaled)
	o.markAutoscalers(&t, options)
	t.Pools = pools
	t.ConfigMaps = sorted(o.ConfigMaps, func(a, b ConfigMap) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	t.Problems = append(append(t.Problems, problems...), unread...)
	slices.SortFunc(t.Problems, CompareProblems)
	return t
}

// readVariants fills the table of variants. Fields that a ScaledObject leaves out are read from its
// target.
func (o Objects) readVariants(t *Tables, c completion) {
	byName := func(a, b scaledobject.Object) int {
		return cmp.Or(cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	}
	names := make(map[fleet.VariantID]bool, len(o.ScaledObjects))
	for _, object := range sorted(o.ScaledObjects, byName) {
		if v, ours := t.readVariant(object, kindScaledObject); ours {
			names[v.ID] = true
			t.Variants = append(t.Variants, v)
			t.resolveTarget(&t.Variants[len(t.Variants)-1], origin{ScaledObjectKey(v.ID.Namespace, v.ID.Name), object}, c)
		}
	}
	for _, job := range sorted(o.ScaledJobs, byName) {
		v, ours := t.readVariant(job, kindScaledJob)
		switch {
		case !ours:
		case names[v.ID]: // KEDA's calls have the name only
			t.Problems = append(t.Problems, Problem{
				Object: scaledJobKey(v.ID.Namespace, v.ID.Name).String(),
				Text:   "a ScaledObject has the same name, so KEDA's calls for the two cannot be told apart: both get the ScaledObject's number",
				Remedy: "remove the trigger from the ScaledJob",
			})
		default:
			t.Variants = append(t.Variants, v)
		}
	}
	slices.SortStableFunc(t.Variants, func(a, b fleet.Variant) int { return a.ID.Compare(b.ID) })
}

// readVariant returns the variant of an object; false if it has no WVA trigger.
func (t *Tables) readVariant(object scaledobject.Object, kind string) (fleet.Variant, bool) {
	v, err := scaledobject.Read(object)
	if errors.Is(err, scaledobject.ErrNotOurs) {
		return v, false
	}
	if err != nil {
		problems := definitionProblems(Key{groupKEDA, kind, object.Metadata.Namespace, object.Metadata.Name}.String(), err)
		t.Problems = append(t.Problems, problems...)
		v.Invalid = invalid(err)
	}
	v.Unsupported = scaledobject.Unsupported(object)
	v.Findings = scaledobject.Lint(object)
	return v, true
}

// origin is the object that defines a variant, in the form of a ScaledObject.
type origin struct {
	name   Key
	object scaledobject.Object
}

// resolveTarget joins a variant with its target, which fills in the fields that the definition
// leaves out.
func (t *Tables) resolveTarget(v *fleet.Variant, from origin, c completion) {
	target, seen := c.targets[TargetKey(v.Target)]
	switch {
	case seen:
		// Two objects may write one kind in two versions: the target is the same, and so has to be
		// its name.
		v.Target.APIVersion = target.ID.APIVersion
		c.complete(v, target, from.object)
	case v.Target.Name != "":
		t.Problems = append(t.Problems, Problem{
			Object: from.name.String(),
			Text:   "its scale target " + v.Target.String() + " (" + v.Target.APIVersion + ") was not found, so its replicas are not known",
			Remedy: "create it, or correct scaleTargetRef",
		})
	}
}

// invalid returns the validation errors of a definition.
func invalid(err error) []fleet.Problem {
	var problems []fleet.Problem
	for _, each := range scaledobject.ValidationErrors(err) {
		problems = append(problems, each.AsProblem())
	}
	return problems
}

// definitionProblems returns a problem for each validation error of a definition.
func definitionProblems(name string, err error) []Problem {
	var problems []Problem
	for _, each := range scaledobject.ValidationErrors(err) {
		problems = append(problems, Problem{Object: name, Text: each.Text(), Remedy: each.Remedy})
	}
	return problems
}

// templateGPUs returns how many accelerators the templates of a replica request.
func (t Target) templateGPUs() int {
	return templateGPUs(t.Template) + t.Workers*templateGPUs(t.Worker)
}

// countGPUs reads from its pods how many accelerators a replica needs, for variants whose
// definition and target do not tell. Without pods it is one, or those that its claims state.
func (f podsOfTargets) countGPUs(variants []fleet.Variant, targets map[Key]Target) {
	for i := range variants {
		if v := &variants[i]; v.GPUsPerReplica == 0 {
			most, _ := f.groups.gpus(f.replicas[TargetKey(v.Target)])
			v.GPUsPerReplica = max(1, most, targets[TargetKey(v.Target)].templateGPUs())
		}
	}
}

// hasKey reports whether an external trigger of the object has the key. Such a trigger is WVA's: no
// other scaler has that key.
func hasKey(object scaledobject.Object, key string) bool {
	for _, trigger := range object.Spec.Triggers {
		if _, found := trigger.Metadata[key]; found && (trigger.Type == "external" || trigger.Type == "external-push") {
			return true
		}
	}
	return false
}
