package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/inventory"
	"github.com/wva-project/wva/inventory/manifests"
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
  finding      the definition is valid, and does not scale as it should; or annotations that are ignored

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
	return printable(line)
}

// linter collects the problems of files.
type linter struct {
	config   string
	snapshot fleet.Snapshot
	places   map[fleet.VariantID]place
	targets  map[inventory.Key]inventory.Target
	problems []problem
}

// place is an object of a file.
type place struct{ file, object string }

func (l *linter) run(command *cobra.Command, files []string) error {
	if l.config != "" {
		configured, err := configured(l.config, "accelerators", "serviceClasses", "profiles")
		if err != nil {
			return fmt.Errorf("the configuration is invalid:\n%w", err)
		}
		l.snapshot.Accelerators, l.snapshot.Classes = configured.Accelerators, configured.ServiceClasses
		l.snapshot.Profiles = configured.EngineProfiles()
	}
	l.places, l.targets = make(map[fleet.VariantID]place), make(map[inventory.Key]inventory.Target)
	var definitions []definition
	for _, file := range files {
		data, err := readInput(command, file)
		if err != nil { // the other files are still checked
			l.add(place{file, "file"}, severityError, fleet.Finding{Code: fleet.CodeInvalidDefinition, Text: err.Error(), Remedy: "name a file of manifests"})
			continue
		}
		definitions = append(definitions, l.file(file, data)...)
	}
	slices.SortStableFunc(definitions, compareDefinitions)
	c := claims{make(map[fleet.TargetID]definition), make(map[fleet.VariantID]definition)}
	for _, d := range definitions {
		l.define(d, c)
	}
	l.plan()
	slices.SortStableFunc(l.problems, func(a, b problem) int {
		return cmp.Or(cmp.Compare(slices.Index(files, a.File), slices.Index(files, b.File)), cmp.Compare(a.Object, b.Object))
	})
	return nil
}

// file returns the definitions of one file, and adds the objects that cannot be read.
func (l *linter) file(file string, data []byte) []definition {
	objects, unreadable := manifests.Read(file, data)
	for _, p := range unreadable {
		l.add(place{file, p.Object}, severityError, fleet.Finding{Code: fleet.CodeInvalidDefinition, Text: p.Text, Remedy: p.Remedy})
	}
	for _, target := range objects.Targets {
		l.targets[inventory.TargetKey(target.ID)] = target
	}
	return l.definitionsIn(file, objects)
}

// define adds the problems of one definition. Of a variant that is decided, plan adds the findings.
func (l *linter) define(d definition, c claims) {
	problem, level, claimed := c.claim(d)
	if claimed && level == severityFinding { // the server ignores the annotations, errors included
		l.add(d.at, level, problem)
		return
	}
	v := d.variant
	for _, each := range scaledobject.ValidationErrors(d.err) {
		l.add(d.at, severityError, fleet.Finding{Code: fleet.CodeInvalidDefinition, Text: each.Text(), Remedy: each.Remedy})
		v.Invalid = append(v.Invalid, each.AsProblem())
	}
	if p := scaledobject.Unsupported(d.object); p != (fleet.Problem{}) {
		v.Unsupported = p
		l.add(d.at, severityUnsupported, fleet.Finding{Code: fleet.CodeUnsupportedTrigger, Text: p.Text, Remedy: p.Remedy})
	}
	if claimed {
		l.add(d.at, level, problem)
		return
	}
	v.Findings = append(scaledobject.Lint(d.object), l.targets[inventory.TargetKey(v.Target)].LabelFindings(v, d.object)...)
	l.places[v.ID] = d.at
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
	summary := fmt.Sprintf("%s: %s, %d unsupported, %s", countOf(len(l.places), "variant"),
		countOf(counts[severityError], "error"), counts[severityUnsupported], countOf(counts[severityFinding], "finding"))
	if counts[severityError]+counts[severityUnsupported] > 0 || strict && counts[severityFinding] > 0 {
		return errors.New(summary)
	}
	if len(l.places) == 0 {
		summary += "; no object has a WVA trigger or wva.dev/ annotations"
	}
	fmt.Fprintln(w, summary)
	return nil
}

// countOf returns a number with its noun, such as "1 error" and "2 errors".
func countOf(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}
