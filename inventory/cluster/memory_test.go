package cluster

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/wva-project/wva/inventory/manifesttest"
)

// servingPod returns a pod as the API server sends it: a vLLM container with a GPU, a shared cache
// and its usual annotations.
func servingPod(variant string, n int) *unstructured.Unstructured {
	fields := decoded(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %[1]s-5f9c7d8b6-%05[2]d
  generateName: %[1]s-5f9c7d8b6-
  namespace: llm
  uid: 6f9619ff-8b86-d011-b42d-%012[2]d
  resourceVersion: "%[2]d"
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {app: %[1]s, app.kubernetes.io/name: vllm, app.kubernetes.io/instance: %[1]s, pod-template-hash: 5f9c7d8b6, team: chat}
  annotations: {prometheus.io/scrape: "true", prometheus.io/port: "8000", k8s.v1.cni.cncf.io/network-status: "[{\"name\": \"cni\", \"ips\": [\"10.0.0.1\"]}]"}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %[1]s-5f9c7d8b6, uid: 7a9619ff-8b86-d011-b42d-00c04fc964ff, controller: true, blockOwnerDeletion: true}]
  managedFields: [{manager: kube-controller-manager, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: {"f:metadata": {"f:labels": {"f:app": {}}}}}]
spec:
  nodeName: gpu-node-%[2]d
  serviceAccountName: default
  schedulerName: default-scheduler
  tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}, {key: node.kubernetes.io/not-ready, operator: Exists, tolerationSeconds: 300}]
  volumes: [{name: cache, persistentVolumeClaim: {claimName: models}}, {name: shm, emptyDir: {medium: Memory}}]
  containers:
  - name: vllm
    image: docker.io/vllm/vllm-openai:v0.11.0
    args: ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--max-num-seqs=256", "--gpu-memory-utilization=0.9"]
    env: [{name: HF_HOME, value: /models}, {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf, key: token}}}, {name: VLLM_LOGGING_LEVEL, value: INFO}]
    ports: [{containerPort: 8000}]
    resources: {limits: {cpu: "8", memory: 64Gi, nvidia.com/gpu: "1"}, requests: {cpu: "8", memory: 64Gi, nvidia.com/gpu: "1"}}
    readinessProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 5}
    volumeMounts: [{name: cache, mountPath: /models}, {name: shm, mountPath: /dev/shm}]
status:
  phase: Running
  hostIP: 10.1.2.3
  podIP: 10.0.0.1
  startTime: "2026-01-01T00:00:01Z"
  conditions:
  - {type: PodScheduled, status: "True", lastTransitionTime: "2026-01-01T00:00:01Z"}
  - {type: Initialized, status: "True", lastTransitionTime: "2026-01-01T00:00:01Z"}
  - {type: ContainersReady, status: "True", lastTransitionTime: "2026-01-01T00:02:00Z"}
  - {type: Ready, status: "True", lastTransitionTime: "2026-01-01T00:02:00Z"}
  containerStatuses: [{name: vllm, image: docker.io/vllm/vllm-openai:v0.11.0, ready: true, restartCount: 0, started: true, state: {running: {startedAt: "2026-01-01T00:00:05Z"}}}]
`, variant, n))
	return &unstructured.Unstructured{Object: fields}
}

func decoded(manifest string) map[string]any {
	return manifesttest.Decode(manifest)[0].Object
}

// take puts an object into the watch as if the API server had sent it.
func (w *resourceWatch) take(u *unstructured.Unstructured) {
	a := new(item)
	w.decode(u, a)
	if err := w.put(a); err != nil {
		panic(err)
	}
}

// largeCluster returns a cluster that has read so many variants with five pods each.
func largeCluster(b *testing.B, variants int) *Cluster {
	c, err := Open(Options{Config: &rest.Config{Host: "http://api.test"}})
	if err != nil {
		b.Fatal(err)
	}
	c.kinds[deployments.groupKind()] = kind{asked: true, found: true, checked: time.Now(), resource: deployments.gvr}
	c.wanted, c.arranged = wantedKinds{kindID{GroupKind: deployments.groupKind()}: {[]string{"v1"}, true}}, true
	for id, r := range c.neededWatches() {
		w := c.newWatch(id, r)
		w.health.listed = true
		c.watches[id] = w
	}
	pods, targets, objects := c.watches[watchID{resource: pods.gvr}], c.watches[watchID{resource: deployments.gvr}], c.watches[watchID{resource: scaledObjects.gvr}]
	template := servingPod("v", 0)
	for i := range variants {
		name := fmt.Sprint("v", i)
		objects.take(&unstructured.Unstructured{Object: decoded(manifesttest.Scaled(name))})
		targets.take(&unstructured.Unstructured{Object: decoded(manifesttest.Deployment(name, 5, "args: [--max-num-seqs=64], resources: {limits: {nvidia.com/gpu: 1}}"))})
		for j := range 5 {
			u := template.DeepCopy()
			u.SetName(fmt.Sprintf("%s-5f9c7d8b6-%d", name, j))
			u.SetLabels(map[string]string{"app": name, "pod-template-hash": "5f9c7d8b6", "team": "chat"})
			owner := u.GetOwnerReferences()
			owner[0].Name = name + "-5f9c7d8b6"
			u.SetOwnerReferences(owner)
			pods.take(u)
		}
	}
	return c
}

func BenchmarkClusterRebuild(b *testing.B) {
	for _, variants := range []int{500, 10000} {
		b.Run(fmt.Sprint("variants=", variants), func(b *testing.B) {
			c := largeCluster(b, variants)
			c.publish(time.Now())
			if workloads := c.Tables().Workloads; len(workloads) != variants || len(workloads[0].Pods) != 5 {
				b.Fatal(len(workloads), c.Tables().Problems[:3])
			}
			b.ReportAllocs()
			for b.Loop() {
				c.publish(time.Now())
			}
		})
	}
}

// BenchmarkPodMemory measures the memory of 50,000 pods, with and without accelerators.
func BenchmarkPodMemory(b *testing.B) {
	const count = 50000
	serving := servingJSON(b)
	templates := map[string][]byte{"serving": serving, "other": bytes.ReplaceAll(serving, []byte("nvidia.com/gpu"), []byte("ephemeral-storage"))}
	for name, template := range templates {
		b.Run(name, func(b *testing.B) { measureMemory(b, pods, template, count) })
	}
}

// measureMemory measures the memory of so many watched objects that differ by name only.
func measureMemory(b *testing.B, r *watchedResource, template []byte, count int) {
	w := largeCluster(b, 0).watches[watchID{resource: r.gvr}]
	for b.Loop() {
		clear(w.rows)
		before := heap()
		for i := range count {
			u := received(b, template)
			u.SetName(fmt.Sprint("chat-5f9c7d8b6-", i))
			w.take(u)
		}
		b.ReportMetric(float64(heap()-before)/float64(count), "B/object")
	}
	runtime.KeepAlive(w)
}

// BenchmarkDeploymentMemory measures the memory of 10,000 Deployments.
func BenchmarkDeploymentMemory(b *testing.B) {
	measureMemory(b, deployments, servingDeploymentJSON(b), 10000)
}

// servingDeploymentJSON returns a Deployment of serving pods as the API server sends it.
func servingDeploymentJSON(b *testing.B) []byte {
	pod := servingPod("chat", 0)
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "chat"}}, "spec": pod.Object["spec"]}
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"replicas": int64(5), "selector": map[string]any{"matchLabels": map[string]any{"app": "chat"}}, "template": template},
		"status": map[string]any{"replicas": int64(5), "readyReplicas": int64(5)},
	}}
	u.SetAPIVersion("apps/v1")
	u.SetKind("Deployment")
	u.SetNamespace("llm")
	u.SetUID(pod.GetUID())
	u.SetResourceVersion("1")
	u.SetCreationTimestamp(pod.GetCreationTimestamp())
	u.SetLabels(pod.GetLabels())
	u.SetAnnotations(map[string]string{"deployment.kubernetes.io/revision": "3"})
	data, err := u.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	return data
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func servingJSON(b *testing.B) []byte {
	data, err := servingPod("chat", 0).MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// received returns a pod as it comes over the wire: no two share a text.
func received(b *testing.B, data []byte) *unstructured.Unstructured {
	u := new(unstructured.Unstructured)
	if err := u.UnmarshalJSON(data); err != nil {
		b.Fatal(err)
	}
	return u
}

// BenchmarkPodEvent measures the time to read a pod that has changed.
func BenchmarkPodEvent(b *testing.B) {
	c := largeCluster(b, 0)
	w := c.watches[watchID{resource: pods.gvr}]
	template := servingJSON(b)
	b.ReportAllocs()
	for b.Loop() {
		w.take(received(b, template))
	}
}
