package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wva-project/wva/app"
)

// version is set by the linker for a release: -ldflags "-X main.version=v1.2.3".
var version string

func newVersionCommand() *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := checkOutput(output, "text", "json"); err != nil {
				return err
			}
			build, out := app.BuildOf(version), command.OutOrStdout()
			if output == "json" {
				return json.NewEncoder(out).Encode(build)
			}
			_, err := fmt.Fprintln(out, "wvactl", build)
			return err
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return command
}
