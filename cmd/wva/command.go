package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wva-project/wva/app"
	"github.com/wva-project/wva/config"
)

const long = `wva decides how many replicas of each variant of a model should run, from the metrics of engines and gateways in
Prometheus, and answers KEDA over gRPC.

Each setting has a key in the configuration file, an environment variable and a flag. A flag overrides the variable, and
the variable overrides the file. The variable of a flag is its name in upper case after WVA_, with underscores: that of
--prometheus-url is WVA_PROMETHEUS_URL. The bearer token has no flag; it is read from --prometheus-bearer-token-file, or
else from WVA_PROMETHEUS_BEARER_TOKEN.

The configuration file is read again when it changes. If it is invalid, the errors are logged and the previous
configuration is kept.

SIGUSR1 writes the input of the latest decision to --dump-snapshot, or to a new file in the temporary directory.
"wvactl plan FILE" decides it again.`

const examples = `  wva --prometheus-url http://127.0.0.1:9099 --manifests examples/manifests
  wva --config /etc/wva/config.yaml --log-format json
  wva config --config /etc/wva/config.yaml --origins`

// helpWidth is the width of the help of flags, in columns.
const helpWidth = 120

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "wva",
		Short:         "The autoscaler for LLM inference on Kubernetes: the server that KEDA calls",
		Long:          long,
		Example:       examples,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(command *cobra.Command, _ []string) error {
			// before all that takes time: SIGUSR1 would end the process
			requests, stop := dumpRequests()
			defer stop()
			c, err := config.Load(command.Flags())
			if err != nil {
				return invalidConfig(err)
			}
			logger, level := app.NewLogger(command.ErrOrStderr(), c.Log)
			server, err := app.New(app.Options{Config: c, Version: version, Logger: logger, Level: level, DumpRequests: requests})
			if err != nil {
				return err
			}
			return server.Run(command.Context())
		},
	}
	withSettings(root)
	root.AddCommand(newConfigCommand(), newVersionCommand())
	return root
}

func newConfigCommand() *cobra.Command {
	var origins, cluster bool
	var output string
	command := &cobra.Command{
		Use:   "config",
		Short: "Print the effective configuration, secrets redacted",
		Long: `Print the configuration that results from the file, the environment and the flags, in the form of a configuration file.
Secrets are redacted. If the configuration is invalid, it is printed all the same, with every validation error on
standard error, and the command fails. With --cluster the ConfigMaps that kubernetes.configMaps selects are read too, as
by a server that starts now; those of namespaces follow as comments.`,
		Example: `  wva config --config /etc/wva/config.yaml --origins
  wva config --config /etc/wva/config.yaml --output json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if output != "yaml" && output != "json" {
				return fmt.Errorf("output %q is unknown; write yaml or json", output)
			}
			c, invalid := config.LoadPartial(command.Flags())
			if cluster && invalid == nil {
				c, invalid = withConfigMaps(command.Context(), c)
			}
			for _, warning := range c.Warnings() {
				fmt.Fprintln(command.ErrOrStderr(), "warning:", warning)
			}
			text := effective(c, output == "json", origins)
			if output != "json" {
				text += c.EffectiveOfNamespaces()
			}
			if _, err := fmt.Fprint(command.OutOrStdout(), text); err != nil {
				return err
			}
			if invalid != nil {
				return invalidConfig(invalid)
			}
			return nil
		},
	}
	command.Flags().BoolVar(&origins, "origins", false, "add the origin of each value")
	command.Flags().BoolVar(&cluster, "cluster", false, "read the ConfigMaps with configuration too")
	command.Flags().StringVarP(&output, "output", "o", "yaml", "yaml or json")
	withSettings(command)
	return command
}

// withConfigMaps returns the configuration with the ConfigMaps, and an error for each invalid key.
func withConfigMaps(ctx context.Context, c *config.Config) (*config.Config, error) {
	merged, rejected, err := app.WithConfigMaps(ctx, c)
	errs := []error{err}
	for _, r := range rejected {
		errs = append(errs, fmt.Errorf("ConfigMap %s/%s: %s", r.Namespace, r.Name, r))
	}
	return merged, errors.Join(errs...)
}

func effective(c *config.Config, json, origins bool) string {
	switch {
	case json && origins:
		return c.EffectiveJSONWithOrigins()
	case json:
		return c.EffectiveJSON()
	case origins:
		return c.EffectiveWithOrigins()
	}
	return c.Effective()
}

// invalidConfig returns the validation errors of a configuration, one a line.
func invalidConfig(err error) error {
	return fmt.Errorf("the configuration is invalid:\n  %s", strings.ReplaceAll(err.Error(), "\n", "\n  "))
}

// withSettings adds a flag for each setting, in the order of the table.
func withSettings(command *cobra.Command) {
	command.Flags().SortFlags = false
	config.AddFlags(command.Flags())
	wrapped := fmt.Sprintf(".LocalFlags.FlagUsagesWrapped %d ", helpWidth)
	command.SetUsageTemplate(strings.ReplaceAll(command.UsageTemplate(), ".LocalFlags.FlagUsages ", wrapped))
}
