package chart

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// types has the Go type of each kind that Kubernetes brings; those of operators are checked by an
// API server.
func types() map[string]any {
	return map[string]any{
		"ClusterRole": &rbacv1.ClusterRole{}, "ClusterRoleBinding": &rbacv1.ClusterRoleBinding{},
		"ConfigMap": &corev1.ConfigMap{}, "Deployment": &appsv1.Deployment{}, "NetworkPolicy": &networkingv1.NetworkPolicy{},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudget{}, "Role": &rbacv1.Role{}, "RoleBinding": &rbacv1.RoleBinding{},
		"Secret": &corev1.Secret{}, "Service": &corev1.Service{}, "ServiceAccount": &corev1.ServiceAccount{},
	}
}

// as decodes an object into its Go type; a field that the type does not have is an error.
func as[T any](t *testing.T, o object) T {
	t.Helper()
	var typed T
	data, err := json.Marshal(o)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(data, &typed), "%s %s", o.kind(), o.name())
	return typed
}

func TestChartPassesHelmLint(t *testing.T) {
	withValues(t, func(t *testing.T, file string) {
		output, failure := helm(t, "lint", "--strict", chart, "--values", file)
		if strings.Contains(output, "which this cluster does not have") {
			return // helm lint does not know the kinds of operators
		}
		require.Empty(t, failure, output)
	})
}

func TestEveryRenderingHasOnlyKnownFields(t *testing.T) {
	withValues(t, func(t *testing.T, file string) {
		oldest := render(t, "--values", file, "--kube-version", "1.30.0")
		for _, all := range []objects{oldest, render(t, "--values", file, "--kube-version", "1.36.0")} {
			require.Len(t, all, len(oldest))
			seen := map[string]bool{}
			for _, o := range all {
				identity := o.kind() + " " + o.name()
				if space, isNamed := o.at("metadata", "namespace").(string); isNamed {
					identity += " in " + space
				}
				require.False(t, seen[identity], "%s twice", identity)
				seen[identity] = true
				require.Equal(t, release, o.at("metadata", "labels", "app.kubernetes.io/instance"), identity)
				if typed := types()[o.kind()]; typed != nil {
					data, err := json.Marshal(o)
					require.NoError(t, err)
					require.NoError(t, yaml.UnmarshalStrict(data, typed), identity)
				}
			}
		}
	})
}

func TestPodsPassTheRestrictedPodSecurityStandard(t *testing.T) {
	withValues(t, func(t *testing.T, file string) {
		spec := as[appsv1.Deployment](t, render(t, "--values", file).one(t, "Deployment")).Spec.Template.Spec
		require.True(t, *spec.SecurityContext.RunAsNonRoot)
		require.EqualValues(t, 65532, *spec.SecurityContext.RunAsUser)
		require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, spec.SecurityContext.SeccompProfile.Type)
		require.False(t, spec.HostNetwork || spec.HostPID || spec.HostIPC)
		require.Len(t, spec.Containers, 1)
		container := spec.Containers[0].SecurityContext
		require.False(t, *container.AllowPrivilegeEscalation)
		require.True(t, *container.ReadOnlyRootFilesystem)
		require.Equal(t, []corev1.Capability{"ALL"}, container.Capabilities.Drop)
	})
}

// The server takes up to 5 s to end its RPCs and 1 s to end requests by HTTP, after preStop.
func TestPodHasTimeToStop(t *testing.T) {
	spec := as[appsv1.Deployment](t, render(t).one(t, "Deployment")).Spec.Template.Spec
	require.Greater(t, *spec.TerminationGracePeriodSeconds, 6+spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds)
}

func TestServiceSelectsThePods(t *testing.T) {
	withValues(t, func(t *testing.T, file string) {
		all := render(t, "--values", file)
		deployment, service := as[appsv1.Deployment](t, all.one(t, "Deployment")), as[corev1.Service](t, all.one(t, "Service"))
		require.Equal(t, deployment.Spec.Selector.MatchLabels, service.Spec.Selector)
		require.Subset(t, deployment.Spec.Template.Labels, service.Spec.Selector)
		ports := map[string]int32{}
		for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
			ports[port.Name] = port.ContainerPort
		}
		want := map[string]int32{"grpc": 9090, "http": 8080}
		if file == "testdata/values/operators.yaml" {
			want["operators"] = 9091
		}
		require.Equal(t, want, ports)
		require.Len(t, service.Spec.Ports, len(want))
		for _, port := range service.Spec.Ports {
			require.Equal(t, port.Port, ports[port.TargetPort.StrVal])
		}
	})
}

func TestEveryMountHasAVolumeAndItsSource(t *testing.T) {
	withValues(t, func(t *testing.T, file string) {
		all := render(t, "--values", file)
		spec := as[appsv1.Deployment](t, all.one(t, "Deployment")).Spec.Template.Spec
		volumes := map[string]bool{}
		for _, volume := range spec.Volumes {
			volumes[volume.Name] = true
			if volume.Name == "config" {
				all.named(t, "ConfigMap", volume.ConfigMap.Name)
			}
		}
		mounted := map[string]bool{}
		for _, mount := range spec.Containers[0].VolumeMounts {
			mounted[mount.Name] = true
		}
		require.Equal(t, volumes, mounted)
	})
}

func TestDisruptionBudgetNeedsSeveralReplicas(t *testing.T) {
	require.Len(t, render(t).all("PodDisruptionBudget"), 1)
	require.Empty(t, render(t, "--set", "replicas=1").all("PodDisruptionBudget"))
}

func TestMemoryLimitOfGoIsBelowThatOfTheContainer(t *testing.T) {
	limit := func(flags ...string) string {
		for _, variable := range as[appsv1.Deployment](t, render(t, flags...).one(t, "Deployment")).Spec.Template.Spec.Containers[0].Env {
			if variable.Name == "GOMEMLIMIT" {
				return variable.Value
			}
		}
		return ""
	}
	require.Equal(t, "921MiB", limit())
	require.Equal(t, "460MiB", limit("--set", "resources.limits.memory=512Mi"))
	require.Equal(t, "1843MiB", limit("--set", "resources.limits.memory=2Gi"))
	require.Empty(t, limit("--set", "resources.limits=null"))
	require.Empty(t, limit("--set", "resources.limits.memory=1500M"), "a unit that the chart does not convert")
	require.Empty(t, limit("--set", "resources=null"))
	require.Equal(t, "1GiB", limit("--set", "extraEnv[0].name=GOMEMLIMIT,extraEnv[0].value=1GiB"), "it would be there twice")
}

func TestNetworkPolicyAllowsThePortOfPrometheus(t *testing.T) {
	for url, want := range map[string]int32{
		"http://prometheus:9099": 9099, "http://prometheus/path": 80, "https://thanos.example.com/query": 443, "https://[fd00::1]:9443": 9443,
	} {
		policy := as[networkingv1.NetworkPolicy](t, render(t, "--set", "networkPolicy.enabled=true", "--set", "prometheus.url="+url).one(t, "NetworkPolicy"))
		require.Len(t, policy.Spec.Egress, 3)
		require.Equal(t, want, policy.Spec.Egress[2].Ports[0].Port.IntVal, url)
	}
}

func TestNamesAreShortEnough(t *testing.T) {
	long := strings.Repeat("r", 53) // the longest that Helm accepts
	for _, mode := range []string{"generate", "certManager"} {
		arguments := append([]string{"template", long, chart, "--set", "podMonitor.enabled=true,podMonitor.selector.app=vllm,tls.mode=" + mode}, operators...)
		output, failure := helm(t, arguments...)
		require.Empty(t, failure)
		for _, o := range decode(t, output) {
			require.LessOrEqual(t, len(o.name()), 63, o.kind())
			for key, label := range o.at("metadata", "labels").(map[string]any) {
				require.LessOrEqual(t, len(label.(string)), 63, key)
			}
		}
	}
}

func TestMonitorsFindTheirPods(t *testing.T) {
	all := render(t, "--values", "testdata/values/monitors.yaml")
	monitor, service := all.one(t, "ServiceMonitor"), as[corev1.Service](t, all.one(t, "Service"))
	for key, label := range monitor.at("spec", "selector", "matchLabels").(map[string]any) {
		require.Equal(t, service.Labels[key], label)
	}
	endpoint := object(monitor.at("spec", "endpoints").([]any)[0].(map[string]any))
	require.Equal(t, true, endpoint["honorLabels"], "the label namespace of a variant is kept")
	require.True(t, slices.ContainsFunc(service.Spec.Ports, func(port corev1.ServicePort) bool { return port.Name == endpoint["port"] }))

	engines := all.one(t, "PodMonitor")
	require.Equal(t, map[string]any{"app": "vllm"}, engines.at("spec", "selector", "matchLabels"))
	require.Equal(t, true, engines.at("spec", "namespaceSelector", "any"))
	engines = render(t, "--values", "testdata/values/monitors-options.yaml").one(t, "PodMonitor")
	require.Equal(t, []any{"llm"}, engines.at("spec", "namespaceSelector", "matchNames"))
}

// YAML reads such names as numbers and booleans.
func TestNamesAreTexts(t *testing.T) {
	for _, name := range []string{"123", "on", "1e3", "null"} {
		arguments := append([]string{
			"template", name, chart, "--namespace", name, "--set", "fullnameOverride=wva,tls.mode=generate,networkPolicy.enabled=true,podMonitor.enabled=true,podMonitor.selector.app=vllm",
			"--set-string", "podMonitor.port=" + name + ",watchNamespaces[0]=" + name + ",serviceAccount.name=" + name + ",priorityClassName=" + name +
				",prometheus.existingSecret.name=" + name,
		}, operators...)
		output, failure := helm(t, arguments...)
		require.Empty(t, failure)
		all := decode(t, output)
		for _, o := range all {
			if namespace := o.at("metadata", "namespace"); namespace != nil {
				require.Equal(t, name, namespace, "%s %s", o.kind(), o.name())
			}
			require.Equal(t, name, o.at("metadata", "labels", "app.kubernetes.io/instance"), o.kind())
		}
		pod := as[appsv1.Deployment](t, all.one(t, "Deployment")).Spec.Template.Spec
		require.Equal(t, name, pod.ServiceAccountName)
		require.Equal(t, name, pod.PriorityClassName)
		as[networkingv1.NetworkPolicy](t, all.one(t, "NetworkPolicy"))
		endpoint := all.one(t, "PodMonitor").at("spec", "podMetricsEndpoints").([]any)[0].(map[string]any)
		require.Equal(t, name, endpoint["port"])
		for _, binding := range all.all("RoleBinding") {
			require.Equal(t, name, binding.at("subjects").([]any)[0].(map[string]any)["name"])
		}
	}
}

// A rule without ports would allow every connection.
func TestNetworkPolicyWithoutPortsOfTheAPIServerHasNoRuleForIt(t *testing.T) {
	for _, ports := range []string{"null", "[]"} {
		policy := as[networkingv1.NetworkPolicy](t, render(t, "--set-json", `networkPolicy={"enabled":true,"apiServerPorts":`+ports+`}`).one(t, "NetworkPolicy"))
		require.Len(t, policy.Spec.Egress, 2)
		for _, rule := range policy.Spec.Egress {
			require.NotEmpty(t, rule.Ports)
		}
	}
}
