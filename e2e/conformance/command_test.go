package conformance

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/wva-project/wva/demo/promstore"
)

// TestCommand drives the released command, with manifests in a directory and a Prometheus that
// answers over HTTP.
func TestCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("builds cmd/wva")
	}
	t.Parallel()
	f := newFixture(t)

	t.Run("AnswersEveryObjectOfTheDirectory", func(t *testing.T) {
		c := f.start(t)
		c.trigger("wake").requireNumber(t, 1) // requests wait for it at the gateway
		c.trigger("blind").requireNumber(t, 3)
		c.trigger("broken").requireNumber(t, 2)
		c.trigger("quiet").requireNumber(t, 0)
		got, err := c.trigger("chat").ask(t)
		require.NoError(t, err)
		require.True(t, got.active)
		require.Positive(t, got.value.Value())
	})
	t.Run("SaysWhyAnUnknownObjectHasNoNumber", func(t *testing.T) {
		_, err := f.start(t).trigger("nobody").ask(t)
		requireStatus(t, err, codes.Unavailable, "team/nobody is not decided yet")
	})
	t.Run("KeepsItsMetricSpecUnderRandomMetadata", func(t *testing.T) {
		c := f.start(t)
		random := rand.New(rand.NewPCG(5, 6))
		for range 50 {
			k := c.trigger([]string{"chat", "nobody"}[random.IntN(2)])
			k.metadata = randomMetadata(random)
			requireSpec(t, k, k.poll(t).GetMetricSpecForScaling(t.Context()))
		}
		k := c.trigger("chat")
		requireSpec(t, k, <-k.subscribe(t).specs())
	})
	t.Run("NeitherEchoesNorLogsSecrets", func(t *testing.T) {
		const secret = "hunter2-s3cr3t"
		c := f.start(t)
		k := c.trigger("nobody")
		k.metadata, k.env = map[string]string{"modelID": "m", "passwordFromEnv": "TOKEN", "variantCost": "x"}, map[string]string{"TOKEN": secret}
		_, err := k.ask(t)
		requireStatus(t, err, codes.InvalidArgument, "variantCost")
		require.NotContains(t, err.Error(), secret)
		require.NotContains(t, c.logs.String(), secret)
	})
	t.Run("AnswersAlmostAMegabyteOfMetadata", func(t *testing.T) {
		k := f.start(t).trigger("blind")
		k.metadata = map[string]string{"modelID": "m", "notes": strings.Repeat("x", 1_000_000)}
		k.requireNumber(t, 3)
	})
	t.Run("PushesOnlyToTheObjectThatIsToBeActivated", func(t *testing.T) {
		c := f.start(t)
		told := make(map[string]<-chan int)
		ends := make(map[string]func())
		for _, name := range []string{"chat", "quiet", "blind", "nobody"} {
			u := c.trigger(name).subscribe(t)
			told[name], ends[name] = readAll(t, u), u.end
		}
		inactive := c.trigger("wake").subscribe(t)
		require.True(t, <-inactive.active)
		require.True(t, <-inactive.active, "still inactive: again after a second")
		for name, count := range told {
			ends[name]()
			require.Zero(t, <-count, name)
		}
	})
	t.Run("EndsStreamsWithNilOnSIGTERM", func(t *testing.T) {
		c := f.start(t)
		k := c.trigger("wake")
		u := k.subscribe(t)
		requireSpec(t, k, <-u.specs())
		require.True(t, <-u.active)
		readAll(t, u)
		failures, endings := len(k.logged(`"error"=`)), len(k.logged("retry backoff"))
		c.terminate(t)
		k.awaitLines(endings+2, "retry backoff") // of both streams
		require.Len(t, k.logged(`"error"=`), failures, "%v", k.logged(`"error"=`))
	})
	t.Run("IsFoundAgainAfterAKill", func(t *testing.T) {
		c := f.start(t)
		u := c.trigger("wake").subscribe(t)
		require.True(t, <-u.active)
		c.kill(t)
		second := f.start(t, "--grpc-address", c.address)
		require.True(t, <-u.active)
		second.trigger("wake").requireNumber(t, 1)
		second.trigger("blind").requireNumber(t, 3)
	})
	t.Run("AnswersLikeItsSecondReplica", func(t *testing.T) {
		one, other := f.start(t), f.start(t)
		for _, name := range []string{"chat", "quiet", "wake", "blind", "broken"} {
			want, err := one.trigger(name).ask(t)
			require.NoError(t, err)
			got, err := other.trigger(name).ask(t)
			require.NoError(t, err)
			require.Equal(t, want, got, name)
		}
	})
	t.Run("AnswersHoldersOfACertificateOnly", func(t *testing.T) {
		trusted := newAuthority(t)
		certificate, key := trusted.leaf("wva")
		c := f.start(t, "--grpc-tls-cert-file", f.file(t, "tls.crt", certificate), "--grpc-tls-key-file", f.file(t, "tls.key", key),
			"--grpc-tls-client-ca-file", f.file(t, "ca.crt", trusted.pem))
		k := c.trigger("blind")
		certificate, key = trusted.leaf("keda")
		k.auth = map[string]string{"caCert": trusted.pem, "tlsClientCert": certificate, "tlsClientKey": key}
		k.requireNumber(t, 3)
		k.auth = map[string]string{"caCert": trusted.pem}
		_, err := k.ask(t)
		require.ErrorContains(t, err, "code = Unavailable")
	})
}

// fixture is the input of the command.
type fixture struct {
	binary     string
	manifests  string
	prometheus string
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{binary: filepath.Join(t.TempDir(), "wva"), manifests: t.TempDir()}
	build := exec.Command("go", "build", "-o", f.binary, "./cmd/wva")
	build.Dir = filepath.Join("..", "..")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))

	now := time.Now()
	objects := []object{
		{name: "chat", replicas: 2, max: 5},
		{name: "quiet", replicas: 0, max: 5},
		{name: "wake", replicas: 0, max: 5},
		{name: "blind", replicas: 3, max: 5},
		{name: "broken", replicas: 2, max: 1, min: 4},
	}
	for _, o := range objects {
		require.NoError(t, os.WriteFile(filepath.Join(f.manifests, o.name+".yaml"), []byte(o.manifest(now)), 0o600))
	}
	store, err := promstore.New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	// The next minutes are stored too: the store has no clock, and nobody has to scrape during the
	// tests.
	for second := -900; second <= 900; second += 15 {
		require.NoError(t, store.Append(now.Add(time.Duration(second)*time.Second), samplesAt(second+900)))
	}
	server := httptest.NewServer(store.Handler())
	t.Cleanup(server.Close)
	f.prometheus = server.URL
	return f
}

// samplesAt returns the samples of one scrape: two engines of chat that are in use, and a gateway
// in which requests wait for wake.
func samplesAt(second int) []promstore.Sample {
	var samples []promstore.Sample
	for i := range 2 {
		own := promstore.Labels("namespace", "team", "pod", podName("chat", i), "model_name", "org/chat")
		config := promstore.Labels("namespace", "team", "pod", podName("chat", i), "block_size", "16", "num_gpu_blocks", "10000")
		requests := 2 * float64(second)
		for name, value := range map[string]float64{
			"vllm:num_requests_running": 30, "vllm:num_requests_waiting": 0, "vllm:kv_cache_usage_perc": 0.4,
			"vllm:time_to_first_token_seconds_count": requests, "vllm:time_to_first_token_seconds_sum": 0.2 * requests,
			"vllm:request_prompt_tokens_sum": 1000 * requests, "vllm:request_prompt_tokens_count": requests,
			"vllm:request_generation_tokens_sum": 200 * requests, "vllm:request_generation_tokens_count": requests,
			"vllm:inter_token_latency_seconds_sum": 4 * requests, "vllm:inter_token_latency_seconds_count": 200 * requests,
		} {
			samples = append(samples, promstore.Sample{Name: name, Labels: own, Value: value})
		}
		samples = append(samples, promstore.Sample{Name: "vllm:cache_config_info", Labels: config, Value: 1})
	}
	gateway := promstore.Labels("namespace", "team", "pod", "gateway-0", "target_model_name", "org/wake")
	return append(samples,
		promstore.Sample{Name: "inference_extension_flow_control_queue_size", Labels: gateway, Value: 4},
		promstore.Sample{Name: "inference_objective_request_total", Labels: gateway, Value: 0.1 * float64(second)},
	)
}

// object is a ScaledObject with its Deployment and pods.
type object struct {
	name               string
	replicas, min, max int
}

func podName(object string, i int) string { return fmt.Sprintf("%s-5d4f8c7b9-%d", object, i) }

// manifest returns the objects; the pods have been ready for long.
func (o object) manifest(now time.Time) string {
	var text strings.Builder
	fmt.Fprintf(&text, `apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: %[1]s, namespace: team}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %[1]s}
  minReplicaCount: %[2]d
  maxReplicaCount: %[3]d
  triggers:
  - type: external-push
    metadata: {scalerAddress: "wva.keda.svc:9090", modelID: org/%[1]s, accelerator: H100, variantCost: "10"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: team}
spec:
  replicas: %[4]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: engine, image: "vllm/vllm-openai:v0.11.0", args: ["--model=org/%[1]s"]}]}
`, o.name, o.min, o.max, o.replicas)
	created, ready := now.Add(-time.Hour).UTC().Format(time.RFC3339), now.Add(-58*time.Minute).UTC().Format(time.RFC3339)
	for i := range o.replicas {
		fmt.Fprintf(&text, `---
apiVersion: v1
kind: Pod
metadata:
  name: %[2]s
  namespace: team
  creationTimestamp: %[3]q
  labels: {app: %[1]s, pod-template-hash: 5d4f8c7b9}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %[1]s-5d4f8c7b9, uid: "1", controller: true}]
spec: {containers: [{name: engine, image: "vllm/vllm-openai:v0.11.0"}]}
status:
  phase: Running
  conditions: [{type: Ready, status: "True", lastTransitionTime: %[4]q}]
`, o.name, podName(o.name, i), created, ready)
	}
	return text.String()
}

// file writes a file and returns its path.
func (*fixture) file(t *testing.T, name, content string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// command is a running wva that has posted its first plan.
type command struct {
	address string
	logs    *lockedBuffer
	process *exec.Cmd
	wait    func() error // returns how it ended, as often as it is asked
}

// start starts the command, with more arguments, and waits until it is ready.
func (f *fixture) start(t *testing.T, arguments ...string) *command {
	t.Helper()
	c := &command{logs: &lockedBuffer{}}
	c.process = exec.Command(f.binary, append([]string{
		"--prometheus-url", f.prometheus, "--manifests", f.manifests, "--interval", "1s",
		"--grpc-address", "127.0.0.1:0", "--operators-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0", "--log-level", "debug",
	}, arguments...)...)
	stderr, err := c.process.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.process.Start())
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		announce := sync.OnceFunc(func() { close(ready) })
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			fmt.Fprintln(c.logs, lines.Text())
			if _, after, found := strings.Cut(lines.Text(), " grpc="); found && c.address == "" {
				c.address, _, _ = strings.Cut(after, " ")
			}
			if strings.Contains(lines.Text(), "first plan posted") {
				announce()
			}
		}
	}()
	c.wait = sync.OnceValue(func() error {
		<-ended
		return c.process.Wait()
	})
	t.Cleanup(func() {
		_ = c.process.Process.Kill() // it may have ended
		_ = c.wait()
	})
	select {
	case <-ready:
	case <-ended:
		t.Fatalf("it ended before it was ready:\n%s", c.logs)
	case <-time.After(time.Minute):
		t.Fatalf("it is not ready after a minute:\n%s", c.logs)
	}
	return c
}

func (c *command) trigger(name string) trigger {
	return trigger{address: c.address, namespace: "team", name: name}
}

// terminate ends the command as Kubernetes does, and asserts that it calls that a success.
func (c *command) terminate(t *testing.T) {
	t.Helper()
	require.NoError(t, c.process.Process.Signal(syscall.SIGTERM))
	require.NoError(t, c.wait(), "%s", c.logs)
}

// kill ends the command without a word.
func (c *command) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, c.process.Process.Kill())
	require.Error(t, c.wait())
}
