package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/planner"
)

func newPlanCommand() *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "plan FILE",
		Short: "Decide a dumped snapshot again",
		Long: `Decide a snapshot again, and print the plan. The file is written by wva: after its first decision with --dump-snapshot, and
on SIGUSR1. It holds the snapshot and the policy that the plan depends on, so the plan is the one that the server served, if
wvactl is of the same release. A file without a policy is decided by the default one. The file - is standard input.

Nothing is read but the file, and nothing is changed.`,
		Example: `  wva --config /etc/wva/config.yaml --dump-snapshot /tmp/snapshot.json
  kill -USR1 $(pidof wva)
  wvactl plan /tmp/snapshot.json
  wvactl plan /tmp/snapshot.json -o json | jq '.decisions[] | select(.held)'`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := checkOutput(output, "table", "json"); err != nil {
				return err
			}
			data, err := readInput(command, args[0])
			if err != nil {
				return err
			}
			in, err := planner.DecodeInput(data)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			text, err := planText(planner.Plan(in.Snapshot, in.Policy), output)
			if err != nil {
				return err
			}
			_, err = io.WriteString(command.OutOrStdout(), text)
			return err
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "table", "table, or json: the plan as a whole")
	return command
}

func planText(plan fleet.Plan, output string) (string, error) {
	if output == "json" {
		data, err := fleet.EncodePlan(plan)
		return string(data), err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "plan of %s: %s, %d held, %d dry run, cost %s per hour\n", plan.Time.Format(time.RFC3339),
		countOf(len(plan.Decisions)+len(plan.Recommendations), "variant"), plan.Held(), len(plan.Recommendations), short(plan.Cost))
	if len(plan.Decisions)+len(plan.Recommendations) > 0 {
		b.WriteString("\n")
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "VARIANT\tCURRENT\tDESIRED\tSTATE\tREASON\tTEXT")
		for _, d := range plan.Decisions {
			writeDecision(w, d, stateOf(d))
		}
		for _, d := range plan.Recommendations {
			writeDecision(w, d, "dry run")
		}
		_ = w.Flush() // into memory
	}
	if len(plan.Conflicts) > 0 {
		b.WriteString("\n")
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "CONFLICT\tVARIANTS\tTEXT")
		for _, c := range plan.Conflicts {
			names := make([]string, len(c.Variants))
			for i, id := range c.Variants {
				names[i] = id.String()
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", c.Type, cmp.Or(strings.Join(names, ","), "-"), c.Text)
		}
		_ = w.Flush() // into memory
	}
	return b.String(), nil
}

func writeDecision(w io.Writer, d fleet.Decision, state string) {
	text := d.Reason.Text
	if remedy := d.Reason.Detail(fleet.DetailRemedy); remedy != "" {
		text += "; " + remedy
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", printable(d.Variant.String()),
		replicas(d.Facts.Current, d.Facts.CurrentKnown), replicas(d.Replicas, d.Known), state, d.Reason.Code, printable(text))
}

// printable returns a text of a file on one line, with a question mark for each control character:
// files come from strangers, and a terminal obeys such characters.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

func replicas(number int, known bool) string {
	if !known {
		return "-"
	}
	return strconv.Itoa(number)
}

func stateOf(d fleet.Decision) string {
	switch {
	case d.Unsupported:
		return "unsupported"
	case d.Held:
		return "held"
	default:
		return "decided"
	}
}
