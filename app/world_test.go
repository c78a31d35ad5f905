package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/demo/promstore"
)

func TestMain(m *testing.M) {
	if os.Getenv(actAs) != "" {
		if err := planEndlessly(); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

const model = "meta-llama/Llama-3.1-8B-Instruct"

// manifest is a variant with its workload as kubectl prints them: %s is the name, %d the replicas
// of the workload.
const manifest = `apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: %[1]s, namespace: llm, creationTimestamp: "2026-01-14T16:20:00Z"}
spec:
  scaleTargetRef: {name: %[1]s}
  minReplicaCount: 0
  maxReplicaCount: 8
  triggers:
  - type: external-push
    metadata: {scalerAddress: "wva.keda.svc:9090", modelID: ` + model + `, accelerator: L40S, variantCost: "%[3]s"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: llm}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: engine, args: [--max-num-seqs=128]}]}}
`

// pod is a ready replica of a variant: %s is the name of the variant, %d the number of the replica.
const pod = `---
apiVersion: v1
kind: Pod
metadata:
  name: %[1]s-5f-%[2]d
  namespace: llm
  creationTimestamp: "2026-01-15T08:00:00Z"
  labels: {app: %[1]s, pod-template-hash: 5f}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %[1]s-5f, controller: true, uid: a}]
spec: {containers: [{name: engine}]}
status: {phase: Running, conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-01-15T08:02:00Z"}]}
`

// world is the surroundings of a server: a Prometheus and a directory of manifests.
type world struct {
	testing.TB
	store     *promstore.Store
	url       string
	manifests string
	dumps     chan os.Signal // requests for a dump
}

func newWorld(t testing.TB) *world {
	t.Helper()
	store, err := promstore.New()
	require.NoError(t, err)
	prometheus := httptest.NewServer(store.Handler())
	t.Cleanup(func() {
		prometheus.Close()
		require.NoError(t, store.Close())
	})
	return &world{TB: t, store: store, url: prometheus.URL, manifests: t.TempDir(), dumps: make(chan os.Signal, 1)}
}

// variant writes the manifests of a variant with ready replicas.
func (w *world) variant(name string, replicas int, cost string) {
	w.Helper()
	text := fmt.Sprintf(manifest, name, replicas, cost)
	for i := range replicas {
		text += fmt.Sprintf(pod, name, i)
	}
	w.write(name+".yaml", text)
}

func (w *world) write(name, text string) {
	w.Helper()
	require.NoError(w, os.WriteFile(filepath.Join(w.manifests, name), []byte(text), 0o600))
}

// load adds the scrapes of a replica in the last ten minutes, one every fifteen seconds: an engine
// with so many running requests, and so many arrivals per second.
func (w *world) load(pod string, now time.Time, running, rate float64) {
	w.Helper()
	labels := promstore.Labels("namespace", "llm", "pod", pod, "model_name", model, "engine", "0")
	for second := -600; second <= 0; second += 15 {
		total := 10_000 + rate*float64(second+600)
		samples := []promstore.Sample{
			{Name: "vllm:num_requests_running", Labels: labels, Value: running},
			{Name: "vllm:num_requests_waiting", Labels: labels, Value: 0},
			{Name: "vllm:kv_cache_usage_perc", Labels: labels, Value: running / 100},
			{Name: "vllm:time_to_first_token_seconds_count", Labels: labels, Value: total},
			{Name: "vllm:time_to_first_token_seconds_sum", Labels: labels, Value: total * 0.2},
			{Name: "vllm:inter_token_latency_seconds_count", Labels: labels, Value: 100 * total},
			{Name: "vllm:inter_token_latency_seconds_sum", Labels: labels, Value: 2 * total},
			{Name: "vllm:request_prompt_tokens_count", Labels: labels, Value: total},
			{Name: "vllm:request_prompt_tokens_sum", Labels: labels, Value: 1000 * total},
			{Name: "vllm:request_generation_tokens_count", Labels: labels, Value: total},
			{Name: "vllm:request_generation_tokens_sum", Labels: labels, Value: 200 * total},
		}
		require.NoError(w, w.store.Scrape(pod, now.Add(time.Duration(second)*time.Second), samples))
	}
}

// config returns a configuration for this world, with free ports of the loopback.
func (w *world) config(arguments ...string) *config.Config {
	w.Helper()
	flags := pflag.NewFlagSet("wva", pflag.ContinueOnError)
	config.AddFlags(flags)
	require.NoError(w, flags.Parse(append([]string{
		"--prometheus-url", w.url, "--manifests", w.manifests, "--grpc-address", "127.0.0.1:0", "--operators-address", "127.0.0.1:0",
		"--http-address", "127.0.0.1:0", "--log-format", "json", "--log-level", "debug",
	}, arguments...)))
	c, err := config.Load(flags)
	require.NoError(w, err)
	return c
}

// newServer returns a server as the command makes it.
func (w *world) newServer(c *config.Config, log io.Writer) (*Server, error) {
	logger, level := NewLogger(log, c.Log)
	return New(Options{Config: c, Logger: logger, Level: level, DumpRequests: w.dumps, ConfigPollInterval: 20 * time.Millisecond})
}

// journal is a log in JSON that a test can wait for.
type journal struct {
	testing.TB
	lines chan map[string]any
	write *io.PipeWriter
}

func newJournal(t testing.TB) *journal {
	read, write := io.Pipe()
	j := &journal{TB: t, lines: make(chan map[string]any, 10_000), write: write}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(j.lines)
		for scanner := bufio.NewScanner(read); scanner.Scan(); {
			var line map[string]any
			if json.Unmarshal(scanner.Bytes(), &line) == nil {
				j.lines <- line
			}
		}
	})
	t.Cleanup(func() {
		require.NoError(t, write.Close())
		reading.Wait()
	})
	return j
}

// Write takes a line of the log.
func (j *journal) Write(line []byte) (int, error) { return j.write.Write(line) }

// await returns the next line with the message.
func (j *journal) await(message string) map[string]any {
	j.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	var before []string
	for {
		select {
		case line, open := <-j.lines:
			if !open {
				j.Fatalf("the log ended without %q", message)
			}
			if strings.HasPrefix(fmt.Sprint(line["msg"]), message) {
				return line
			}
			before = append(before, fmt.Sprint(line))
		case <-deadline.C:
			j.Fatalf("the log has no line %q:\n%s", message, strings.Join(before, "\n"))
		}
	}
}

// started is a server at work.
type started struct {
	*Server
	log        *journal
	dumps      chan<- os.Signal
	grpc, http string       // the addresses
	operators  string       // the address
	stop       func() error // ends it as SIGTERM does
}

func (w *world) start(arguments ...string) *started {
	w.Helper()
	log := newJournal(w)
	s, err := w.newServer(w.config(arguments...), log)
	require.NoError(w, err)
	return w.run(s, log)
}

// run starts a server.
func (w *world) run(s *Server, log *journal) *started {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	w.Cleanup(func() { require.NoError(w, stop()) })
	starting := log.await("starting")
	return &started{
		Server: s, log: log, dumps: w.dumps, grpc: fmt.Sprint(starting["grpc"]), http: fmt.Sprint(starting["http"]),
		operators: fmt.Sprint(starting["operators"]), stop: stop,
	}
}
