package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/planner"
	"github.com/wva-project/wva/scaledobject"
)

func newLintCommand() *cobra.Command {
	var l linter
	var output string
	var strict bool
	command := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Check ScaledObjects and dry-run annotations",
		Long: `Check the ScaledObjects with a WVA trigger, and the objects with wva.dev/ annotations, in files of manifests: YAML or JSON
as 'kubectl get -o yaml' prints it, with any number of documents and lists. The file - is standard input. Objects of other
scalers are skipped. Nothing but the files is read.

It prints a line for each problem, of three types:
  error        a value is invalid: the variant is held, and not scaled
  unsupported  KEDA would not apply the number as it is meant: calls of KEDA are answered with an error
  finding      the definition is valid, and does not scale as it should

With --config, names of accelerators and service classes are compared with those of a configuration file of wva.

The exit code is 1 if there is an error or an unsupported trigger, and with --strict if there is a finding.`,
		Example: `  wvactl lint scaledobject.yaml
  wvactl lint --strict --config wva.yaml deploy/*.yaml
  kubectl get scaledobjects -A -o yaml | wvactl lint -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, files []string) error {
			if err := checkOutput(output, "text", "json"); err != nil {
				return err
			}
			if err := l.run(command, files); err != nil {
				return err
			}
			text, err := l.text(output)
			if err != nil {
				return err
			}
			if _, err := io.WriteString(command.OutOrStdout(), text); err != nil {
				return err
			}
			return l.verdict(command.ErrOrStderr(), strict)
		},
	}
	command.Flags().StringVar(&l.config, "config", "", "configuration file of wva, for names of accelerators and service classes")
	command.Flags().BoolVar(&strict, "strict", false, "fail if there is a finding")
	command.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return command
}

// severity is the type of a problem.
type severity string

// The severities.
const (
	severityError       severity = "error"
	severityUnsupported severity = "unsupported"
	severityFinding     severity = "finding"
)

// problem is one line of lint.
type problem struct {
	File     string     `json:"file"`
	Object   string     `json:"object"`
	Severity severity   `json:"severity"`
	Code     fleet.Code `json:"code"`
	Text     string     `json:"text"`
	Remedy   string     `json:"remedy"`
}

// String returns the problem as one line.
func (p problem) String() string {
	line := fmt.Sprintf("%s: %s: %s: %s: %s", p.File, p.Object, p.Severity, p.Code, p.Text)
	if p.Remedy != "" {
		line += "; " + p.Remedy
	}
	return line
}

// linter collects the problems of files.
type linter struct {
	config   string
	snapshot fleet.Snapshot
	places   map[fleet.VariantID]place
	problems []problem
}

// place is an object of a file.
type place struct{ file, object string }

func (l *linter) run(command *cobra.Command, files []string) error {
	if l.config != "" {
		configured, err := configured(l.config, "accelerators", "serviceClasses")
		if err != nil {
			return fmt.Errorf("the configuration is invalid:\n%w", err)
		}
		l.snapshot.Accelerators, l.snapshot.Classes = configured.Accelerators, configured.ServiceClasses
	}
	l.places = make(map[fleet.VariantID]place)
	for _, file := range files {
		data, err := readInput(command, file)
		if err != nil {
			return err
		}
		l.file(file, data)
	}
	l.plan()
	slices.SortStableFunc(l.problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(slices.Index(files, a.File), slices.Index(files, b.File)), cmp.Compare(a.Object, b.Object))
	})
	return nil
}

// file checks the objects of one file, each by itself.
func (l *linter) file(file string, data []byte) {
	objects, unreadable := inventory.ReadManifests(file, data)
	for _, p := range unreadable {
		l.add(place{file, p.Object}, severityError, fleet.Finding{Code: fleet.CodeInvalidDefinition, Text: p.Text, Remedy: p.Remedy})
	}
	for _, o := range slices.Concat(objects.ScaledObjects, objects.ScaledJobs) {
		switch at := (place{file, fmt.Sprintf("%s %s/%s", cmp.Or(o.Kind, "ScaledObject"), o.Metadata.Namespace, o.Metadata.Name)}); {
		case o.IsOurs():
			v, err := scaledobject.Read(o)
			l.variant(at, o, v, err)
		case scaledobject.Declares(o.Metadata.Annotations):
			v, err := scaledobject.ReadDryRun(o)
			l.variant(at, o, v, err)
		}
	}
	for _, t := range objects.Targets {
		if scaledobject.Declares(t.Annotations) {
			l.dryRun(file, t.ID, t.ID, t.Annotations)
		}
	}
	for _, h := range objects.HPAs {
		if scaledobject.Declares(h.Annotations) {
			id := fleet.TargetID{Namespace: h.Namespace, Kind: "HorizontalPodAutoscaler", Name: h.Name}
			l.dryRun(file, id, h.Target, h.Annotations)
		}
	}
}

// dryRun checks the annotations of an object that is no ScaledObject.
func (l *linter) dryRun(file string, id, target fleet.TargetID, annotations map[string]string) {
	o := scaledobject.Object{
		Metadata: scaledobject.Meta{Namespace: id.Namespace, Name: id.Name, Annotations: annotations},
		Spec:     scaledobject.Spec{ScaleTargetRef: scaledobject.TargetRef{APIVersion: target.APIVersion, Kind: target.Kind, Name: target.Name}},
	}
	v, err := scaledobject.ReadDryRun(o)
	l.variant(place{file, id.String()}, o, v, err)
}

// variant adds the problems of one definition, but its findings, which plan adds.
func (l *linter) variant(at place, o scaledobject.Object, v fleet.Variant, err error) {
	for _, each := range scaledobject.ValidationErrors(err) {
		l.add(at, severityError, fleet.Finding{Code: fleet.CodeInvalidDefinition, Text: each.Text(), Remedy: each.Remedy})
		v.Invalid = each.Error()
	}
	if v.Unsupported = scaledobject.Unsupported(o); v.Unsupported != "" {
		text, remedy := v.Unsupported, ""
		if i := strings.LastIndex(text, "; "); i >= 0 {
			text, remedy = text[:i], text[i+2:]
		}
		l.add(at, severityUnsupported, fleet.Finding{Code: fleet.CodeUnsupportedTrigger, Text: text, Remedy: remedy})
	}
	v.Findings = scaledobject.Lint(o)
	if earlier, twice := l.places[v.ID]; twice {
		l.add(at, severityError, fleet.Finding{
			Code: fleet.CodeInvalidDefinition, Text: "the name is that of " + earlier.object + " in " + earlier.file + " too", Remedy: "rename or remove one of the two",
		})
		return
	}
	l.places[v.ID] = at
	l.snapshot.Variants = append(l.snapshot.Variants, v)
}

// plan adds the problems that take all variants to see: unknown names and conflicts, as the server
// would report them.
func (l *linter) plan() {
	plan := planner.Plan(l.snapshot, planner.Policy{})
	for _, d := range slices.Concat(plan.Decisions, plan.Recommendations) {
		for _, f := range d.Findings {
			if f.Code == fleet.CodeUnknownServiceClass && l.config == "" {
				continue // no class is known
			}
			l.add(l.places[d.Variant], severityFinding, f)
		}
	}
	for _, c := range plan.Conflicts {
		switch c.Type {
		case fleet.ConflictDuplicateTarget, fleet.ConflictInconsistentMetadata:
			l.add(l.places[c.Variants[0]], severityFinding, fleet.Finding{Code: fleet.Code(c.Type), Text: c.Text})
		default: // is a validation error or an unsupported trigger already
		}
	}
}

func (l *linter) add(at place, s severity, f fleet.Finding) {
	l.problems = append(l.problems, problem{at.file, at.object, s, f.Code, f.Text, f.Remedy})
}

func (l *linter) text(output string) (string, error) {
	if output == "json" {
		data, err := json.MarshalIndent(append([]problem{}, l.problems...), "", "  ")
		return string(data) + "\n", err
	}
	var b strings.Builder
	for _, p := range l.problems {
		fmt.Fprintln(&b, p)
	}
	return b.String(), nil
}

// verdict writes the counts, and returns an error if lint fails.
func (l *linter) verdict(w io.Writer, strict bool) error {
	counts := make(map[severity]int)
	for _, p := range l.problems {
		counts[p.Severity]++
	}
	summary := fmt.Sprintf("%d variants: %d errors, %d unsupported, %d findings",
		len(l.places), counts[severityError], counts[severityUnsupported], counts[severityFinding])
	if counts[severityError]+counts[severityUnsupported] > 0 || strict && counts[severityFinding] > 0 {
		return errors.New(summary)
	}
	if len(l.places) == 0 {
		summary += "; no object has a WVA trigger or wva.dev/ annotations"
	}
	fmt.Fprintln(w, summary)
	return nil
}
