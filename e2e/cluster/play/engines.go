package play

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/wva-project/wva/fleet"
)

const (
	// tick is the time between two looks at the cluster.
	tick = 500 * time.Millisecond
	// Names of container ports: an engine's, and that of a gateway's metrics.
	enginePort, gatewayPort = "http", "metrics"
)

// engines plays the engines and gateways of all pods.
type engines struct {
	client           kubernetes.Interface
	cancel           context.CancelFunc
	looking, serving sync.WaitGroup

	mu      sync.Mutex
	models  map[fleet.ModelID]*served
	servers map[string]*http.Server // by pod: namespace/name
}

// startEngines plays engines until close. The context's end does not end them.
func startEngines(ctx context.Context, client kubernetes.Interface) *engines {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &engines{client: client, cancel: cancel, models: map[fleet.ModelID]*served{}, servers: map[string]*http.Server{}}
	e.looking.Go(func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				e.look(ctx)
			}
		}
	})
	return e
}

func (e *engines) close() {
	e.cancel()
	e.looking.Wait() // it starts servers
	e.mu.Lock()
	for _, server := range e.servers {
		_ = server.Close() // nothing is written
	}
	e.mu.Unlock()
	e.serving.Wait()
}

// look takes over the workloads, pods and loads of the cluster. If the API server does not answer,
// the engines go on as they are.
func (e *engines) look(ctx context.Context) {
	cached := metav1.ListOptions{ResourceVersion: "0"}
	deployments, err := e.client.AppsV1().Deployments("").List(ctx, cached)
	if err != nil {
		return
	}
	pods, err := e.client.CoreV1().Pods("").List(ctx, cached)
	if err != nil {
		return
	}
	load, err := e.client.CoreV1().ConfigMaps(Namespace).Get(ctx, loadName, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return
	}
	variants := variantsOf(deployments.Items, pods.Items)
	ready := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !isReady(&pod) })
	rates := loads(load.Data)
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for model, own := range variants {
		if e.models[model] == nil {
			e.models[model] = &served{model: model}
		}
		e.models[model].advance(now, own, rates[loadKey(model.Name)])
	}
	e.listen(ready)
}

// variantsOf returns the engines' Deployments by model, each with its ready pods.
func variantsOf(deployments []appsv1.Deployment, pods []corev1.Pod) map[fleet.ModelID][]variant {
	variants := map[fleet.ModelID][]variant{}
	for i := range deployments {
		d := &deployments[i]
		name, ok := modelOf(&d.Spec.Template.Spec)
		if !ok || portNumber(&d.Spec.Template.Spec, enginePort) == 0 {
			continue
		}
		v := variant{
			namespace: d.Namespace, name: d.Name, accelerator: acceleratorOf(&d.Spec.Template.Spec), sequences: sequencesOf(&d.Spec.Template.Spec),
		}
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err != nil {
			continue // the API server has validated it
		}
		for j := range pods {
			if pods[j].Namespace == d.Namespace && isReady(&pods[j]) && selector.Matches(labels.Set(pods[j].Labels)) {
				v.pods = append(v.pods, pods[j].Name)
			}
		}
		slices.Sort(v.pods)
		model := fleet.ModelID{Namespace: d.Namespace, Name: name}
		variants[model] = append(variants[model], v)
	}
	return variants
}

// modelOf reads the model from the arguments of an engine.
func modelOf(spec *corev1.PodSpec) (string, bool) {
	if model, found := argument(spec, "--model"); found {
		return model, true
	}
	return argument(spec, "serve")
}

// sequencesOf reads the largest batch from the arguments of an engine; 0 if it is not given.
func sequencesOf(spec *corev1.PodSpec) int {
	text, _ := argument(spec, "--max-num-seqs")
	sequences, err := strconv.Atoi(text)
	if err != nil || sequences < 0 || sequences > maxSequences {
		return 0
	}
	return sequences
}

// maxSequences is the largest batch that the simulation takes with its default of batched tokens.
const maxSequences = 2048

// argument returns the value of an argument, as name=value or as the word after the name.
func argument(spec *corev1.PodSpec, name string) (string, bool) {
	for _, container := range spec.Containers {
		words := strings.Fields(strings.Join(slices.Concat(container.Command, container.Args), " "))
		for i, word := range words {
			if value, found := strings.CutPrefix(word, name+"="); found {
				return value, true
			}
			if word == name && i+1 < len(words) {
				return words[i+1], true
			}
		}
	}
	return "", false
}

// acceleratorOf reads the accelerator from the node selector; H100 without one.
func acceleratorOf(spec *corev1.PodSpec) fleet.Accelerator {
	for _, known := range []fleet.Accelerator{"A100", "L40S"} {
		if strings.Contains(spec.NodeSelector["nvidia.com/gpu.product"], string(known)) {
			return known
		}
	}
	return "H100"
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.PodIP != "" && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// portNumber returns the number of a port by its name; 0 if there is none.
func portNumber(spec *corev1.PodSpec, name string) int {
	for _, container := range spec.Containers {
		for _, port := range container.Ports {
			if port.Name == name {
				return int(port.ContainerPort)
			}
		}
	}
	return 0
}

// listen makes every ready pod of an engine or gateway answer on its own address, and no other.
func (e *engines) listen(ready []corev1.Pod) {
	current := map[string]bool{}
	for i := range ready {
		pod := &ready[i]
		port, answer := e.answerOf(pod)
		if port == 0 {
			continue
		}
		key := pod.Namespace + "/" + pod.Name
		current[key] = true
		if e.servers[key] != nil {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port))) //nolint:noctx // it does not wait
		if err != nil {
			continue // a pod that is run for real has its own listener
		}
		server := &http.Server{Handler: answer, ReadHeaderTimeout: time.Minute}
		e.servers[key] = server
		e.serving.Go(func() { _ = server.Serve(listener) }) // until it is closed
	}
	for key, server := range e.servers {
		if !current[key] {
			_ = server.Close() // nothing is written
			delete(e.servers, key)
		}
	}
}

// answerOf returns the port of a played pod and its metrics; 0 for all other pods.
func (e *engines) answerOf(pod *corev1.Pod) (int, http.Handler) {
	namespace, name := pod.Namespace, pod.Name
	if model, ok := modelOf(&pod.Spec); ok {
		id := fleet.ModelID{Namespace: namespace, Name: model}
		return portNumber(&pod.Spec, enginePort), e.answer(func(text *bytes.Buffer) {
			if s := e.models[id]; s != nil {
				s.writeEngine(text, name)
			}
		})
	}
	return portNumber(&pod.Spec, gatewayPort), e.answer(func(text *bytes.Buffer) {
		for id, s := range e.models {
			if id.Namespace == namespace {
				s.writeGateway(text)
			}
		}
	})
}

func (e *engines) answer(write func(text *bytes.Buffer)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		var text bytes.Buffer
		e.mu.Lock()
		write(&text)
		e.mu.Unlock()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write(text.Bytes()) // the client may be gone
	})
	return mux
}
