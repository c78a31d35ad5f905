package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/wva-project/wva/scaledobject"
)

// renderFlags are the flags of render. Values of metadata keys are kept as text by their flags.
type renderFlags struct {
	name, namespace, target, targetKind, targetAPIVersion string
	min, max                                              int64
	cooldown                                              time.Duration
	options                                               scaledobject.RenderOptions
	output                                                string
}

func newRenderCommand() *cobra.Command {
	var f renderFlags
	command := &cobra.Command{
		Use:   "render",
		Short: "Print the recommended ScaledObject of a variant",
		Long: `Print the ScaledObject that is recommended for a variant: activated by push, followed by the HPA at once and to the last
replica, and unchanged during errors. 'wvactl lint' finds nothing in it. A flag for each metadata key of the trigger has the
key's meaning; docs/reference/scaledobject.md explains the keys.`,
		Example: `  wvactl render --name chat-l40s --namespace llm --model-id meta-llama/Llama-3.1-8B-Instruct \
    --accelerator L40S --variant-cost 2.1 --ttft 500ms --itl 40ms --max 8 | kubectl apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := checkOutput(f.output, "yaml", "json"); err != nil {
				return err
			}
			text, err := f.render(command)
			if err != nil {
				return err
			}
			_, err = io.WriteString(command.OutOrStdout(), text)
			return err
		},
	}
	f.define(command)
	return command
}

func (f *renderFlags) define(command *cobra.Command) {
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.name, "name", "", "name of the ScaledObject (required)")
	flags.StringVar(&f.namespace, "namespace", "default", "namespace of the ScaledObject and its target")
	flags.StringVar(&f.target, "target", "", "name of the workload; default: that of the ScaledObject")
	flags.StringVar(&f.targetKind, "target-kind", "Deployment", "Kind of the workload")
	flags.StringVar(&f.targetAPIVersion, "target-api-version", "", "API version of the workload; default: that of the Kind, if it is Deployment, StatefulSet or LeaderWorkerSet")
	flags.Int64Var(&f.min, "min", 0, "least number of replicas; 0 lets the model scale to zero if a gateway reports its requests")
	flags.Int64Var(&f.max, "max", 0, "largest number of replicas (required)")
	flags.DurationVar(&f.cooldown, "cooldown", 5*time.Minute, "delay of KEDA before it scales to zero, in whole seconds")
	flags.StringVar(&f.options.ScalerAddress, "scaler-address", "", "address of wva for KEDA; default: wva.keda.svc:9090")
	flags.DurationVar(&f.options.PollingInterval, "polling-interval", 0, "time between two polls of KEDA, in whole seconds; default: 10s")
	flags.StringVar(&f.options.Authentication, "authentication", "", "name of a TriggerAuthentication, for mutual TLS; default: none")
	flags.StringVar(&f.options.ClusterAuthentication, "cluster-authentication", "", "name of a ClusterTriggerAuthentication, such as that of the Helm chart; default: none")
	for _, key := range scaledobject.Keys() {
		flags.String(flagOf(key.Name), key.Default, key.Meaning)
	}
	flags.StringVarP(&f.output, "output", "o", "yaml", "yaml or json")
}

// flagOf returns the flag of a metadata key: model-id of modelID.
func flagOf(key string) string {
	var b strings.Builder
	var before rune
	for _, r := range key {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return b.String()
}

func (f *renderFlags) render(command *cobra.Command) (string, error) {
	var missing []error
	for _, required := range []string{"name", "max"} {
		if !command.Flags().Changed(required) {
			missing = append(missing, fmt.Errorf("%s is missing; give --%s", required, required))
		}
	}
	metadata := map[string]string{}
	for _, key := range scaledobject.Keys() {
		switch flag := command.Flags().Lookup(flagOf(key.Name)); {
		case flag.Changed:
			metadata[key.Name] = flag.Value.String()
		case key.Required:
			missing = append(missing, fmt.Errorf("%s is missing; give --%s, such as %s", key.Name, flag.Name, key.Example))
		}
	}
	if err := usage(errors.Join(append(missing, f.check())...)); err != nil {
		return "", err
	}
	v, err := scaledobject.Read(f.object(metadata))
	if err != nil {
		return "", f.explained(err)
	}
	return f.encoded(scaledobject.Render(v, f.options))
}

// check returns the errors of flags that are no fields of a variant.
func (f *renderFlags) check() error {
	var wrong []error
	if f.options.Authentication != "" && f.options.ClusterAuthentication != "" {
		wrong = append(wrong, errors.New("a trigger has one authentication; give --authentication or --cluster-authentication"))
	}
	for _, each := range []struct {
		flag  string
		value time.Duration
	}{{"cooldown", f.cooldown}, {"polling-interval", f.options.PollingInterval}} {
		if each.value < 0 || each.value%time.Second != 0 {
			wrong = append(wrong, fmt.Errorf("%s %s is not valid; write whole seconds, such as 10s", each.flag, each.value))
		}
	}
	if _, known := apiVersions()[f.targetKind]; !known && f.targetAPIVersion == "" {
		wrong = append(wrong, fmt.Errorf("target-kind %q has no default API version; give --target-api-version", f.targetKind))
	}
	return errors.Join(wrong...)
}

// apiVersions returns the API versions of well-known Kinds of workloads.
func apiVersions() map[string]string {
	return map[string]string{"Deployment": "apps/v1", "StatefulSet": "apps/v1", "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1"}
}

// object returns the definition of the flags as a ScaledObject, so that the rules of ScaledObjects
// apply.
func (f *renderFlags) object(metadata map[string]string) scaledobject.Object {
	seconds := int64(f.cooldown / time.Second)
	return scaledobject.Object{
		Metadata: scaledobject.Meta{Name: f.name, Namespace: f.namespace},
		Spec: scaledobject.Spec{
			ScaleTargetRef: scaledobject.TargetRef{
				APIVersion: cmp.Or(f.targetAPIVersion, apiVersions()[f.targetKind]), Kind: f.targetKind, Name: cmp.Or(f.target, f.name),
			},
			CooldownPeriod: &seconds, MinReplicaCount: &f.min, MaxReplicaCount: &f.max,
			Triggers: []scaledobject.Trigger{{Type: "external-push", Metadata: metadata}},
		},
	}
}

// explained returns the validation errors of a definition, each with the flag of its key.
func (f *renderFlags) explained(err error) error {
	fields := map[string]string{
		"metadata.name": "name", "metadata.namespace": "namespace", "cooldownPeriod": "cooldown",
		"minReplicaCount": "min", "maxReplicaCount": "max", "scaleTargetRef.name": "target",
		"scaleTargetRef.kind": "target-kind", "scaleTargetRef.apiVersion": "target-api-version",
	}
	var invalid []error
	for _, each := range scaledobject.ValidationErrors(err) {
		flag, isField := fields[each.Key]
		if !isField {
			flag = flagOf(each.Key)
		}
		invalid = append(invalid, fmt.Errorf("--%s: %w", flag, each))
	}
	return usage(errors.Join(invalid...))
}

func (f *renderFlags) encoded(o scaledobject.Object) (string, error) {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encoding the ScaledObject: %w", err)
	}
	if f.output == "json" {
		return string(data) + "\n", nil
	}
	data, err = yaml.JSONToYAML(data)
	return string(data), err
}
