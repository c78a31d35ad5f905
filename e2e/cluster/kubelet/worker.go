package kubelet

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// syncPeriod is the time between two looks at the ConfigMaps and Secrets of a pod. A real
	// kubelet takes up to a minute.
	syncPeriod = time.Second
	// The time between the end of a container and its restart doubles up to the maximum.
	restartDelay, maxRestartDelay = 500 * time.Millisecond, 10 * time.Second
)

// worker runs one pod, until it is deleted.
type worker struct {
	options *Options
	pod     *corev1.Pod
	image   Image
	life    context.Context    //nolint:containedctx // of the pod, which begins before run
	cancel  context.CancelFunc // ends the pod without grace

	deletion chan struct{} // is closed when the pod is to end
	once     sync.Once
	grace    time.Duration // written before deletion is closed

	process atomic.Int64 // its number while the container runs, else 0

	status status
}

func newWorker(ctx context.Context, options *Options, pod *corev1.Pod, image Image) *worker {
	w := &worker{options: options, pod: pod.DeepCopy(), image: image, deletion: make(chan struct{})}
	w.life, w.cancel = context.WithCancel(ctx)
	w.status = status{client: options.Client, pod: w.pod, started: metav1.Now()}
	return w
}

// delete begins the end of the pod.
func (w *worker) delete(pod *corev1.Pod) {
	w.once.Do(func() {
		if pod.DeletionGracePeriodSeconds != nil {
			w.grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
		}
		close(w.deletion)
	})
}

// run starts the container again and again. A pod that cannot be started stays waiting, with the
// error as its message, and is tried again.
func (w *worker) run() {
	ctx := w.life
	defer w.cancel()
	for delay := restartDelay; ; delay = min(2*delay, maxRestartDelay) {
		w.status.waiting(ctx, w.attempt(ctx))
		select {
		case <-ctx.Done():
			return
		case <-w.deletion:
			w.status.remove(ctx)
			return
		case <-time.After(delay):
			w.status.restarts++
		}
	}
}

// attempt runs the container until it ends, and returns why it does not run.
func (w *worker) attempt(ctx context.Context) error {
	volumes, err := w.openVolumes(ctx)
	if err != nil {
		return err
	}
	spec, err := w.sandbox(ctx, volumes)
	if err != nil {
		return err
	}
	container := &w.pod.Spec.Containers[0]
	probes, err := newProbes(container, w.pod.Status.PodIP)
	if err != nil {
		return err
	}
	log := filepath.Join(w.options.Directory, "logs", fmt.Sprintf("%s_%s_%s.log", w.pod.Namespace, w.pod.Name, container.Name))
	process, err := startSandbox(spec, log)
	if err != nil {
		return err
	}
	w.process.Store(int64(process.number()))
	defer w.process.Store(0)
	w.status.running(ctx)
	w.watch(ctx, process, volumes, probes)
	return process.result()
}

// watch keeps volumes and readiness up to date until the process has ended.
func (w *worker) watch(ctx context.Context, process *process, volumes []*volume, probes *probes) {
	probing, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	results := probes.run(probing, &group)
	ticker := time.NewTicker(syncPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-process.ended:
			return
		case <-ctx.Done():
			process.kill()
			return
		case <-w.deletion:
			stop()
			w.end(ctx, process)
			return
		case <-ticker.C:
			w.status.retry(ctx)
			for _, v := range volumes {
				_ = v.refresh(ctx) // the old content stays, and the next look comes soon
			}
		case result := <-results:
			if result.failed != "" {
				w.status.message = result.failed
				w.grace = w.terminationGrace()
				w.end(ctx, process)
				return
			}
			w.status.ready(ctx, result.ready)
		}
	}
}

// end asks the process to end, and kills it after the grace period. The hook's sleep counts as
// grace.
func (w *worker) end(ctx context.Context, process *process) {
	deadline := time.After(w.grace)
	if hook := w.pod.Spec.Containers[0].Lifecycle; hook != nil && hook.PreStop != nil && hook.PreStop.Sleep != nil {
		select {
		case <-time.After(time.Duration(hook.PreStop.Sleep.Seconds) * time.Second):
		case <-process.ended:
		case <-deadline:
		case <-ctx.Done():
		}
	}
	process.terminate()
	select {
	case <-process.ended:
	case <-deadline:
	case <-ctx.Done():
	}
	process.kill()
}

func (w *worker) terminationGrace() time.Duration {
	if seconds := w.pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return 30 * time.Second
}
