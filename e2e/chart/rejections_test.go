package chart

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSchemaRejectsWrongValues(t *testing.T) {
	for values, reason := range map[string]string{
		"relicas=3":                             "additional properties 'relicas' not allowed",
		"replicas=0":                            "'/replicas': minimum",
		"replicas=two":                          "'/replicas': got string, want integer",
		"image.pullPolicy=Sometimes":            "'Always', 'IfNotPresent', 'Never'",
		"image.digest=latest":                   "'/image/digest'",
		"image.repository=ghcr.io/wva:v1":       "'/image/repository'",
		"prometheus.url=prometheus:9090":        "'/prometheus/url'",
		"prometheus.url=http://me:hush@p":       "'/prometheus/url'",
		"fullnameOverride=1st":                  "'/fullnameOverride'",
		"prometheus.existingSecret.token=x":     "additional properties 'token'",
		"tls.mode=mtls":                         "'none', 'secret', 'certManager', 'generate'",
		"tls.certManager.duration=90d":          "'/tls/certManager/duration'",
		"tls.certManager.issuerRef.kind=Issuer": "properties 'name' required",
		"tls.generate.days=0":                   "'/tls/generate/days': minimum",
		"watchNamespaces={llm,llm}":             "'/watchNamespaces'",
		"watchNamespaces={LLM}":                 "'/watchNamespaces/0'",
		"rbac.scaleTargets[0].apiGroups={x}":    "missing property 'resources'",
		"podDisruptionBudget.maxUnavailable=0":  "minimum",
		"resources.limits.memory=1GB":           "'/resources/limits/memory'",
		"terminationGracePeriodSeconds=5":       "minimum",
		"serviceMonitor.interval=often":         "'/serviceMonitor/interval'",
		"podMonitor.portNumber=70000":           "maximum",
		"podMonitor.path=metrics":               "'/podMonitor/path'",
		"operators.port=9092":                   "additional properties 'port'",
		"networkPolicy.apiServerPorts={443,x}":  "want integer",
		"config.intervall=15s":                  "additional properties 'intervall' not allowed",
		"config.prometheus.window.latest=1m":    "additional properties 'window' not allowed",
		"config.log.level=loud":                 "'/config/log/level'",
		"config.models=x":                       "'/config/models'",
		"configMaps=some":                       "'/configMaps'",
		"config.interval.seconds=1":             "'/config/interval'",
	} {
		require.Contains(t, rejection(t, "--set", values), reason, values)
	}
}

func TestTemplatesRejectValuesThatDoNotFit(t *testing.T) {
	for _, test := range []struct{ values, reason string }{
		{"serviceAccount.create=false", "serviceAccount.name is empty; name an existing ServiceAccount"},
		{"operators.expose=true,tls.mode=generate", "set operators.allowedClients"},
		{"operators.allowedClients={ops}", "operators.allowedClients has no effect on a port of the loopback; set operators.expose"},
		{"prometheus.existingSecret.caKey=ca.crt", "set prometheus.existingSecret.name"},
		{"serviceMonitor.enabled=true", "install prometheus-operator, or set it to false. Without a cluster, name them: --api-versions monitoring.coreos.com/v1"},
		{"podMonitor.enabled=true,podMonitor.selector.app=vllm", "podMonitor.enabled needs the kinds of monitoring.coreos.com/v1"},
		{"tls.mode=certManager", "install cert-manager, or set tls.mode to generate"},
	} {
		require.Contains(t, rejection(t, "--set", test.values), test.reason, test.values)
	}
	for values, reason := range map[string]string{
		"podMonitor.enabled=true":                                                        "podMonitor.selector is empty",
		"tls.mode=certManager,keda.namespace=elsewhere":                                  "set tls.certManager.issuerRef to a ClusterIssuer",
		"tls.mode=certManager,keda.namespace=elsewhere,tls.certManager.issuerRef.name=x": "set tls.certManager.issuerRef to a ClusterIssuer",
	} {
		require.Contains(t, rejection(t, append(operators, "--set", values)...), reason, values)
	}
	require.Contains(t, rejection(t, "--kube-version", "1.29.0"), "1.30")
}

func TestValuesWithoutContentAreRejectedOrAreTheDefault(t *testing.T) {
	for values, missing := range map[string]string{
		"replicas": "'replicas'", "tls": "'tls'", "tls.mode": "'mode'", "tls.generate": "'generate'", "image": "'image'",
		"prometheus": "'prometheus'", "prometheus.url": "'url'", "prometheus.existingSecret": "'existingSecret'",
		"rbac": "'rbac'", "rbac.create": "'create'", "serviceAccount": "'serviceAccount'", "keda": "'keda'",
		"networkPolicy": "'networkPolicy'", "podMonitor": "'podMonitor'", "serviceMonitor": "'serviceMonitor'",
		"service": "'service'", "operators": "'operators'", "podDisruptionBudget": "'podDisruptionBudget'",
	} {
		require.Contains(t, rejection(t, "--set", values+"=null"), "missing property "+missing, values)
	}
	want := template(t)
	for _, values := range []string{"config", "watchNamespaces", "extraEnv", "imagePullSecrets"} {
		require.Equal(t, want, template(t, "--set", values+"=null"), values)
	}
	template(t, "--set", "resources=null")
}

func TestNameOfTheServiceIsAName(t *testing.T) {
	for _, release := range []string{"1wva", "wva.prod"} {
		_, failure := helm(t, "template", release, chart)
		require.Contains(t, failure, release+" cannot be the name of a Service")
		require.Contains(t, failure, "set fullnameOverride")
		_, failure = helm(t, "template", release, chart, "--set", "fullnameOverride=wva")
		require.Empty(t, failure)
	}
}
