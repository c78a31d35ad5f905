package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unseen are the flags that do not change a report: it is the same at every speed.
var unseen = []string{"report", "output", "jobs", "speed", "grpc-address", "operators-address", "verbose"}

// commandLine returns the command with the flags that determine the report, sorted.
func commandLine(command *cobra.Command) string {
	line := []string{"wvactl", command.Name()}
	command.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(unseen, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, several := f.Value.(pflag.SliceValue); several {
			values = list.GetSlice()
		}
		if f.Value.Type() == "bool" { // its value is no argument of its own
			line = append(line, fmt.Sprintf("--%s=%s", f.Name, f.Value))
			return
		}
		for _, value := range values {
			line = append(line, "--"+f.Name, shellWord(value))
		}
	})
	return strings.Join(line, " ")
}

// shellWord quotes a value if a shell would not read it as one word.
func shellWord(text string) string {
	plain := strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-") == ""
	if plain && text != "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
