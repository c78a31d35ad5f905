package kubelet

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// status is the status of one pod, as it was last written.
type status struct {
	client  kubernetes.Interface
	pod     *corev1.Pod
	started metav1.Time // of the pod

	restarts int32
	message  string // why the container was ended
	state    corev1.ContainerState
	isReady  bool
	pending  bool // the last write failed
}

func (s *status) running(ctx context.Context) {
	s.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	s.isReady = false
	s.write(ctx)
}

// waiting tells why the container does not run.
func (s *status) waiting(ctx context.Context, reason error) {
	text := reason.Error()
	if s.message != "" {
		text = s.message + "; " + text
	}
	s.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: text}}
	s.isReady, s.message = false, ""
	s.write(ctx)
}

func (s *status) ready(ctx context.Context, ready bool) {
	if ready != s.isReady {
		s.isReady = ready
		s.write(ctx)
	}
}

// retry writes the status again if that failed.
func (s *status) retry(ctx context.Context) {
	if s.pending {
		s.write(ctx)
	}
}

// write patches the status. An error is not returned: the pod may be gone, or the API server for a
// moment, and retry writes the whole status again.
func (s *status) write(ctx context.Context) {
	now, truth := metav1.Now(), corev1.ConditionFalse
	if s.isReady {
		truth = corev1.ConditionTrue
	}
	container := s.pod.Spec.Containers[0]
	isRunning := s.state.Running != nil
	fresh := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: s.pod.Status.HostIP, PodIP: s.pod.Status.PodIP, PodIPs: []corev1.PodIP{{IP: s.pod.Status.PodIP}}, StartTime: &s.started,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: s.started},
			{Type: corev1.ContainersReady, Status: truth, LastTransitionTime: now},
			{Type: corev1.PodReady, Status: truth, LastTransitionTime: now},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: container.Name, Image: container.Image, Ready: s.isReady, RestartCount: s.restarts, Started: &isRunning, State: s.state,
		}},
	}
	patch, err := json.Marshal(map[string]any{"status": fresh})
	if err != nil {
		return // it cannot be: the types are the API's
	}
	_, err = s.client.CoreV1().Pods(s.pod.Namespace).Patch(ctx, s.pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	s.pending = err != nil
}

// remove removes the pod from the API server after its container has ended.
func (s *status) remove(ctx context.Context) {
	now := int64(0)
	_ = s.client.CoreV1().Pods(s.pod.Namespace).Delete(ctx, s.pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &s.pod.UID},
	}) // it may be gone
}
