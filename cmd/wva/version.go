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
			switch output {
			case "text":
				_, err := fmt.Fprintln(command.OutOrStdout(), "wva", app.BuildOf(version))
				return err
			case "json":
				return json.NewEncoder(command.OutOrStdout()).Encode(app.BuildOf(version))
			}
			return fmt.Errorf("output %q is unknown; write text or json", output)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return command
}
