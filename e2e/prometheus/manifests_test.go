package prometheus

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/wva-project/wva/fleet"
)

// hash is that of every pod template.
const hash = "5d4f8c7b9"

// scaledObject defines a variant with a Deployment of its name; NAME, MODEL and ENGINE are
// replaced.
const scaledObject = `apiVersion: v1
kind: List
items:
- apiVersion: keda.sh/v1alpha1
  kind: ScaledObject
  metadata: {name: NAME, namespace: llm, creationTimestamp: "2026-01-14T16:20:00Z"}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}
    minReplicaCount: 1
    maxReplicaCount: 8
    triggers:
    - type: external-push
      metadata: {scalerAddress: "wva.keda.svc:9090", modelID: MODEL, engine: ENGINE, accelerator: L40S, variantCost: "1.1", ttft: 2s, itl: 200ms}
`

// manifests is a directory that shows a cluster as kubectl get -o yaml prints it.
type manifests struct {
	testing.TB
	directory string
	flags     string // of every engine
	written   []byte
}

func newManifests(t testing.TB, d dialect) *manifests {
	m := &manifests{TB: t, directory: t.TempDir(), flags: d.flags}
	for _, v := range variants() {
		text := strings.NewReplacer("NAME", v.ID.Name, "MODEL", v.Model.Name, "ENGINE", string(d.engine)).Replace(scaledObject)
		require.NoError(t, os.WriteFile(filepath.Join(m.directory, "scaledobject-"+v.ID.Name+".yaml"), []byte(text), 0o600))
	}
	return m
}

// show replaces the Deployments and pods, all at once, if they changed.
func (m *manifests) show(workloads []fleet.Workload) {
	list := corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	for _, w := range workloads {
		list.Items = append(list.Items, runtime.RawExtension{Object: deployment(w, m.flags)})
		for _, p := range w.Pods {
			list.Items = append(list.Items, runtime.RawExtension{Object: pod(w.ID, p)})
		}
	}
	text, err := yaml.Marshal(list)
	if err != nil {
		m.Errorf("writing manifests: %v", err)
		return
	}
	if bytes.Equal(text, m.written) {
		return
	}
	m.written = text
	whole := filepath.Join(m.directory, "workloads.new")
	if err := os.WriteFile(whole, text, 0o600); err != nil {
		m.Errorf("writing manifests: %v", err)
	}
	if err := os.Rename(whole, filepath.Join(m.directory, "workloads.yaml")); err != nil {
		m.Errorf("replacing manifests: %v", err)
	}
}

func deployment(w fleet.Workload, flags string) *appsv1.Deployment {
	labels, replicas := map[string]string{"app": w.ID.Name}, int32(w.Replicas)
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: w.ID.Name, Namespace: w.ID.Namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "engine", Args: []string{flags}}}},
			},
		},
	}
}

func pod(owner fleet.TargetID, p fleet.Pod) *corev1.Pod {
	controller := true
	shown := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: owner.Namespace, CreationTimestamp: metav1.NewTime(p.Created),
			Labels:          map[string]string{"app": owner.Name, "pod-template-hash": hash},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner.Name + "-" + hash, Controller: &controller}},
		},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "engine"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if p.Terminating {
		deleted := metav1.NewTime(p.Created.Add(time.Second)) // when does not matter
		shown.DeletionTimestamp = &deleted
	}
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	if p.Ready {
		ready.Status, ready.LastTransitionTime = corev1.ConditionTrue, metav1.NewTime(p.ReadyAt)
	}
	shown.Status.Conditions = []corev1.PodCondition{ready}
	return shown
}
