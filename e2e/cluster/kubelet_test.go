package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wva-project/wva/e2e/cluster"
	"github.com/wva-project/wva/e2e/cluster/kubelet"
)

const (
	testedImage = "registry.test:5000/team/tested"
	tested      = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red}
---
apiVersion: v1
kind: Service
metadata: {name: tested}
spec:
  selector: {app: tested}
  ports: [{port: 80, targetPort: http}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: tested}
spec:
  replicas: 2
  selector: {matchLabels: {app: tested}}
  template:
    metadata: {labels: {app: tested}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 4321}
      containers:
      - name: main
        image: registry.test:5000/team/tested:v1
        args: [--where, $(PLACE)]
        env:
        - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
        - {name: ADDRESS, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
        - {name: PLACE, value: on-$(NODE)}
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /readyz, port: http}, periodSeconds: 1, failureThreshold: 1}
        livenessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 1, failureThreshold: 3}
        resources: {limits: {memory: 64Mi}}
        securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        volumeMounts:
        - {name: settings, mountPath: /etc/settings}
        - {name: scratch, mountPath: /scratch}
      volumes:
      - {name: settings, configMap: {name: settings}}
      - {name: scratch, emptyDir: {}}
`
)

// surroundings is the answer of the tested container.
type surroundings struct {
	Arguments, Environment []string
	User                   int
	Hostname, Status       string
	Read, Error            string
}

// startTested starts a cluster with two pods of the tested image.
func startTested(t *testing.T) *cluster.Cluster {
	t.Helper()
	tree := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(tree, "main"), "./testdata/container")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	image := kubelet.Image{Name: testedImage, Tree: tree, Entrypoint: []string{"/main"}}
	c := cluster.Start(t, cluster.Options{Images: []kubelet.Image{image}})
	require.NoError(t, c.Apply(t.Context(), []byte(tested)))
	eventually(t, "both pods are ready", func() bool { return readyReplicas(t.Context(), t, c, "tested") == 2 })
	return c
}

// ask returns the answer of a server by its host name.
func ask(t *testing.T, host, path string) (surroundings, error) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + host + path)
	if err != nil {
		return surroundings{}, err
	}
	defer answer.Body.Close()
	var s surroundings
	_ = json.NewDecoder(answer.Body).Decode(&s) // some paths answer nothing
	return s, nil
}

func testedPods(t *testing.T, c *cluster.Cluster) []corev1.Pod {
	t.Helper()
	pods, err := c.Client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=tested"})
	require.NoError(t, err)
	return pods.Items
}

func TestPodsThatRunForReal(t *testing.T) {
	c := startTested(t)
	t.Run("ContainerHasTheSurroundingsOfItsPod", func(t *testing.T) { testSurroundings(t, c) })
	t.Run("MountedConfigMapIsReplaced", func(t *testing.T) { testReplacedConfigMap(t, c) })
	t.Run("PortsAreForwardedToTheLoopbackOfAPod", func(t *testing.T) { testForwardedPort(t, c) })
	t.Run("ContainerIsRestartedAndAskedToEnd", func(t *testing.T) { testRestart(t, c) })
	t.Run("ServiceLeadsToReadyPodsOnly", func(t *testing.T) { testService(t, c) })
}

func testSurroundings(t *testing.T, c *cluster.Cluster) {
	pod := testedPods(t, c)[0]
	host := pod.Status.PodIP + ":8080"
	s, err := ask(t, host, "/")
	require.NoError(t, err)
	require.Equal(t, []string{"/main", "--where", "on-general"}, s.Arguments)
	require.Subset(t, s.Environment, []string{
		"ADDRESS=" + pod.Status.PodIP, "MEMORY=64", "KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443", "TESTED_SERVICE_PORT=80",
	})
	require.Equal(t, 4321, s.User)
	require.Equal(t, pod.Name, s.Hostname)
	require.Contains(t, s.Status, "CapEff:\t0000000000000000")
	require.Contains(t, s.Status, "NoNewPrivs:\t1")

	for path, message := range map[string]string{"/file": "read-only", "/etc/settings/color": "read-only", "/scratch/file": ""} {
		s, err := ask(t, host, "/?write="+path)
		require.NoError(t, err)
		if message == "" {
			require.Empty(t, s.Error, path)
		} else {
			require.Contains(t, s.Error, message, path)
		}
	}
	s, err = ask(t, host, "/?read=/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	require.NoError(t, err)
	require.Equal(t, "default", s.Read)
	for _, file := range []string{"token", "ca.crt"} {
		s, err := ask(t, host, "/?read=/var/run/secrets/kubernetes.io/serviceaccount/"+file)
		require.NoError(t, err)
		require.NotEmpty(t, s.Read, file)
	}
}

func testReplacedConfigMap(t *testing.T, c *cluster.Cluster) {
	host := testedPods(t, c)[0].Status.PodIP + ":8080"
	color := func() string {
		s, err := ask(t, host, "/?read=/etc/settings/color")
		require.NoError(t, err)
		return s.Read
	}
	require.Equal(t, "red", color())
	_, err := c.Kubectl(t.Context(), nil, "patch", "configmap", "settings", "--type", "merge", "--patch", `{"data": {"color": "blue"}}`)
	require.NoError(t, err)
	eventually(t, "the file is new", func() bool { return color() == "blue" })
}

func testForwardedPort(t *testing.T, c *cluster.Cluster) {
	pod := testedPods(t, c)[0]
	_, err := ask(t, pod.Status.PodIP+":8081", "/")
	require.Error(t, err, "the pod listens on its loopback only")
	port, err := cluster.FreePort()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// it is killed
		_, _ = c.Kubectl(ctx, nil, "port-forward", "pod/"+pod.Name, fmt.Sprintf("%d:8081", port))
	}()
	defer func() {
		cancel()
		<-ended
	}()
	eventually(t, "the pod answers", func() bool {
		s, err := ask(t, fmt.Sprintf("127.0.0.1:%d", port), "/")
		return err == nil && s.Hostname == pod.Name
	})
}

func testService(t *testing.T, c *cluster.Cluster) {
	eventually(t, "both pods are ready", func() bool { return readyReplicas(t.Context(), t, c, "tested") == 2 })
	const service = "tested.default.svc:80"
	seen := map[string]bool{}
	eventually(t, "both pods answer", func() bool {
		if s, err := ask(t, service, "/"); err == nil {
			seen[s.Hostname] = true
		}
		return len(seen) == 2
	})
	pods := testedPods(t, c)
	_, err := ask(t, pods[0].Status.PodIP+":8080", "/unready")
	require.NoError(t, err)
	eventually(t, "one is not ready", func() bool { return readyReplicas(t.Context(), t, c, "tested") == 1 })
	eventually(t, "the other one alone answers", func() bool {
		for range 20 {
			if s, err := ask(t, service, "/"); err != nil || s.Hostname != pods[1].Name {
				return false
			}
		}
		return true
	})
}

func testRestart(t *testing.T, c *cluster.Cluster) {
	pod := testedPods(t, c)[0]
	_, err := ask(t, pod.Status.PodIP+":8080", "/fail")
	require.NoError(t, err)
	eventually(t, "the container was restarted", func() bool {
		seen, err := c.Client.CoreV1().Pods("default").Get(t.Context(), pod.Name, metav1.GetOptions{})
		return err == nil && len(seen.Status.ContainerStatuses) == 1 && seen.Status.ContainerStatuses[0].RestartCount == 1 &&
			seen.Status.ContainerStatuses[0].Ready
	})
	log, err := c.Kubectl(t.Context(), nil, "logs", pod.Name)
	require.NoError(t, err)
	require.Equal(t, "started\nasked to end\nstarted\n", log)
	log, err = c.Kubectl(t.Context(), nil, "logs", pod.Name, "--tail", "1")
	require.NoError(t, err)
	require.Equal(t, "started\n", log)

	_, err = c.Kubectl(t.Context(), nil, "delete", "pod", pod.Name) // returns when it is gone
	require.NoError(t, err)
	require.Contains(t, c.Logs(), "started\nasked to end\nstarted\nasked to end\n")
}
