package kubelet

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Image is the content of a container image.
type Image struct {
	// Name is the reference without its tag.
	Name string
	// Tree is the directory of its root file system.
	Tree string
	// Entrypoint is run if the container has no command.
	Entrypoint []string
	// User runs the container if the pod names none.
	User int64
}

// Options are the cluster that the kubelet belongs to. All fields are needed.
type Options struct {
	Client kubernetes.Interface
	// Directory is for volumes, root file systems and logs. It exists.
	Directory string
	Images    []Image
	// Environment is that of every container beside its own: the address of the API server.
	Environment map[string]string
	// Nameserver answers the names of Services.
	Nameserver string
	// Address is that of the nodes. The kubelet's API listens there, with the certificate.
	Address     string
	Certificate tls.Certificate
}

// Kubelet runs pods until Close.
type Kubelet struct {
	options Options
	life    context.Context //nolint:containedctx // it ends with Close
	cancel  context.CancelFunc
	server  *http.Server
	watch   informers.SharedInformerFactory
	group   sync.WaitGroup

	mu      sync.Mutex
	pods    map[types.UID]*worker
	numbers int // of pods so far: each has an address of its own
}

// Start starts a kubelet. The context limits the start only.
func Start(ctx context.Context, options Options) (*Kubelet, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k := &Kubelet{
		options: options, life: life, cancel: cancel, pods: map[types.UID]*worker{},
		watch: informers.NewSharedInformerFactory(options.Client, 0),
	}
	informer := k.watch.Core().V1().Pods().Informer()
	changed := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok {
			k.update(life, pod)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: func(_, object any) { changed(object) },
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				k.forget(pod.UID)
			}
		},
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	if err := k.serve(); err != nil {
		cancel()
		return nil, err
	}
	k.watch.Start(life.Done())
	return k, nil
}

// Close ends all containers without grace, and waits for them.
func (k *Kubelet) Close() {
	k.cancel()
	_ = k.server.Close() // nothing is written
	k.watch.Shutdown()
	k.group.Wait()
}

// update hands a pod to its worker. Pods of unknown images have none.
func (k *Kubelet) update(ctx context.Context, pod *corev1.Pod) {
	image, known := k.image(pod)
	if !known || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	w, exists := k.pods[pod.UID]
	if !exists {
		if ctx.Err() != nil {
			return
		}
		k.numbers++
		w = newWorker(ctx, &k.options, pod, image)
		w.pod.Status.PodIP, w.pod.Status.HostIP = address(k.numbers), k.options.Address
		k.pods[pod.UID] = w
		k.group.Go(w.run)
	}
	if pod.DeletionTimestamp != nil {
		w.delete(pod)
	}
}

// forget ends the container of a pod that is gone, as after a forced deletion.
func (k *Kubelet) forget(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w, exists := k.pods[uid]; exists {
		w.cancel()
		delete(k.pods, uid)
	}
}

// image returns the image of a pod's first container.
func (k *Kubelet) image(pod *corev1.Pod) (Image, bool) {
	if len(pod.Spec.Containers) == 0 {
		return Image{}, false
	}
	name := Repository(pod.Spec.Containers[0].Image)
	i := slices.IndexFunc(k.options.Images, func(i Image) bool { return i.Name == name })
	if i < 0 {
		return Image{}, false
	}
	return k.options.Images[i], true
}

// Repository returns a reference of an image without its digest and tag.
func Repository(reference string) string {
	reference, _, _ = strings.Cut(reference, "@")
	if colon := strings.LastIndexByte(reference, ':'); colon > strings.LastIndexByte(reference, '/') {
		return reference[:colon]
	}
	return reference
}

// LogDirectory has the log of each container: namespace_pod_container.log.
func (k *Kubelet) LogDirectory() string { return filepath.Join(k.options.Directory, "logs") }

// Logs returns the logs of containers by the names of their files. Those of pods that are gone are
// among them.
func (k *Kubelet) Logs() map[string]string {
	logs := map[string]string{}
	paths, _ := filepath.Glob(filepath.Join(k.LogDirectory(), "*.log")) // the pattern is valid
	for _, path := range paths {
		if content, err := os.ReadFile(path); err == nil {
			logs[strings.TrimSuffix(filepath.Base(path), ".log")] = string(content)
		}
	}
	return logs
}
