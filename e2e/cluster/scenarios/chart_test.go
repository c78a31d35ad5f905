package scenarios

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wva-project/wva/e2e/cluster"
)

const (
	repository = "../../.."
	helmChart  = repository + "/deploy/chart/wva"
)

// helmCluster is a cluster to which Helm installs the chart. No pod runs in it.
type helmCluster struct {
	*testing.T
	*cluster.Cluster
	binary string
}

func newHelmCluster(t *testing.T, options cluster.Options) *helmCluster {
	t.Helper()
	binary, err := filepath.Abs(filepath.Join(repository, "bin", "helm"))
	require.NoError(t, err)
	require.FileExists(t, binary, "run make bin/helm")
	options.KEDACRDs = true
	h := &helmCluster{T: t, Cluster: cluster.Start(t, options), binary: binary}
	for _, name := range []string{"keda", "keda-system", "llm", "chat"} {
		space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := h.Client.CoreV1().Namespaces().Create(t.Context(), space, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return h
}

// helm runs helm as the administrator and returns its output.
func (h *helmCluster) helm(arguments ...string) string {
	h.Helper()
	command := exec.CommandContext(h.Context(), h.binary, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+h.Kubeconfig, "HOME="+h.TempDir())
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	require.NoError(h, command.Run(), "helm %s: %s", arguments[0], stderr.String())
	return stdout.String()
}

// install installs the chart, or upgrades it, as its README says.
func (h *helmCluster) install(values string) {
	h.Helper()
	h.helm("upgrade", "--install", "wva", helmChart, "--namespace", "keda", "--set", values)
}

func TestAPIServerAcceptsEveryRenderingOfTheChart(t *testing.T) {
	h := newHelmCluster(t, cluster.Options{MonitorCRDs: true, CertManagerCRDs: true})
	files, err := filepath.Glob(repository + "/e2e/chart/testdata/values/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		h.accepts(file, h.helm("template", "wva", helmChart, "--namespace", "keda", "--values", file,
			"--api-versions", "monitoring.coreos.com/v1", "--api-versions", "cert-manager.io/v1"))
	}
	manifests, err := os.ReadFile(repository + "/deploy/wva.yaml")
	require.NoError(t, err)
	h.accepts("deploy/wva.yaml", string(manifests))
}

// accepts checks that kubectl would create each object, and that none has an unknown field.
func (h *helmCluster) accepts(name, manifests string) {
	h.Helper()
	output, err := h.Kubectl(h.Context(), []byte(manifests), "apply", "--dry-run=server", "--validate=strict", "-f", "-")
	require.NoError(h, err, name)
	require.Equal(h, strings.Count(manifests, "\nkind: "), strings.Count(output, "created (server dry run)"), output)
}

// certificates are the data of the Secrets that the chart makes, by name and key.
func (h *helmCluster) certificates() map[string]string {
	h.Helper()
	found := map[string]string{}
	for _, name := range []string{"wva-ca", "wva-tls", "wva-keda-client"} {
		secret, err := h.Client.CoreV1().Secrets("keda").Get(h.Context(), name, metav1.GetOptions{})
		require.NoError(h, err)
		for key, data := range secret.Data {
			found[name+" "+key] = string(data)
		}
	}
	return found
}

// changed returns the keys whose data differ, sorted.
func changed(before, after map[string]string) []string {
	var keys []string
	for key := range after {
		if before[key] != after[key] {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func TestUpgradesKeepGeneratedCertificatesAndUninstallLeavesNothing(t *testing.T) {
	h := newHelmCluster(t, cluster.Options{MonitorCRDs: true})
	h.install("tls.mode=generate")
	first := h.certificates()
	require.Equal(t, first["wva-ca tls.crt"], first["wva-tls ca.crt"])

	h.install("tls.mode=generate,replicas=3")
	require.Empty(t, changed(first, h.certificates()))

	h.install("tls.mode=generate,tls.clusterDomain=example.internal")
	renamed := h.certificates()
	require.Equal(t, []string{"wva-tls tls.crt", "wva-tls tls.key"}, changed(first, renamed), "the server has another name")

	h.install("tls.mode=generate,tls.clusterDomain=example.internal,tls.generate.rotation=one")
	rotated := h.certificates()
	require.Len(t, changed(renamed, rotated), len(rotated))
	require.Equal(t, first["wva-ca tls.crt"], rotated["wva-ca previous.crt"])
	for _, key := range []string{"wva-tls ca.crt", "wva-keda-client ca.crt"} {
		require.Equal(t, rotated["wva-ca tls.crt"]+first["wva-ca tls.crt"], rotated[key], "the previous authority is trusted")
	}

	h.install("tls.mode=generate,tls.clusterDomain=example.internal,tls.generate.rotation=one")
	require.Empty(t, changed(rotated, h.certificates()))

	h.install("tls.mode=generate,networkPolicy.enabled=true,serviceMonitor.enabled=true,watchNamespaces={llm},rbac.clusterReader=true")
	require.Greater(t, h.labelled(), 12)
	h.helm("uninstall", "wva", "--namespace", "keda")
	require.Zero(t, h.labelled())
}

// labelled returns the number of objects with the label of the release.
func (h *helmCluster) labelled() int {
	h.Helper()
	kinds := "deployments,services,configmaps,secrets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings,poddisruptionbudgets," +
		"networkpolicies,servicemonitors,clustertriggerauthentications"
	output, err := h.Kubectl(h.Context(), nil, "get", kinds, "--all-namespaces", "--selector", "app.kubernetes.io/instance=wva", "--output", "json")
	require.NoError(h, err)
	var list struct{ Items []json.RawMessage }
	require.NoError(h, json.Unmarshal([]byte(output), &list))
	return len(list.Items)
}
