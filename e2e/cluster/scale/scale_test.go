package scale

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wva-project/wva/e2e/cluster"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

var (
	models   = flag.Int("models", 10, "models, of five ScaledObjects and 25 pods each")
	nodes    = flag.Int("nodes", 20, "nodes, of 16 accelerators each")
	streams  = flag.Int("streams", 200, "streams of KEDA")
	observed = flag.Duration("observed", 30*time.Second, "how long cycles are observed")
)

func TestMain(m *testing.M) {
	cluster.Enter(cluster.Options{KEDACRDs: true})
	flag.Parse()
	os.Exit(m.Run())
}

// TestServerAtScale starts the server beside a fleet that exists, and logs its time and memory.
func TestServerAtScale(t *testing.T) {
	c := cluster.Start(t, cluster.Options{KEDACRDs: true})
	f := fleet{models: *models, nodes: *nodes}
	begun := time.Now()
	_, err := c.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "keda"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	f.create(t, c)
	t.Logf("%d ScaledObjects, %d nodes and %d pods written in %s", f.variants(), f.nodes, f.pods(), time.Since(begun).Round(time.Second))

	requests := apiRequests(t, c)
	s := start(t, c, newCopies(t, f.models))
	ready := s.awaitDecisions(f.variants())
	t.Logf("| all %d variants decided after | %.1f s |", f.variants(), ready.Seconds())
	t.Logf("| most memory until then | %d MiB |", s.status("VmHWM")>>10)
	t.Logf("| requests to the API server until then | %.0f |", apiRequests(t, c)-requests)

	requests = apiRequests(t, c)
	cycles, seconds, used := s.metric("wva_cycles_total"), s.metric("wva_cycle_duration_seconds"), s.cpuTime()
	time.Sleep(*observed)
	cycles, seconds, used = s.metric("wva_cycles_total")-cycles, s.metric("wva_cycle_duration_seconds")-seconds, s.cpuTime()-used
	require.Positive(t, cycles)
	t.Logf("| cycle, mean of %.0f | %.2f s |", cycles, seconds/cycles)
	t.Logf("| processor time for each cycle | %.2f s |", used.Seconds()/cycles)
	t.Logf("| requests to the API server in a minute | %.0f |", (apiRequests(t, c)-requests)/observed.Minutes())
	t.Logf("| most memory | %d MiB |", s.status("VmHWM")>>10)

	s.open(f, *streams)
	time.Sleep(scrapeInterval)
	t.Logf("| most memory with %d streams | %d MiB |", *streams, s.status("VmHWM")>>10)
	t.Logf("| memory with %d streams | %d MiB |", *streams, s.status("VmRSS")>>10)
}

// server is a running wva.
type server struct {
	*testing.T
	command   *exec.Cmd
	began     time.Time
	http      string
	keda      string
	operators wvav1alpha1.OperatorServiceClient
}

func start(t *testing.T, c *cluster.Cluster, prometheus string) *server {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "wva")
	build := exec.Command("go", "build", "-o", binary, "./cmd/wva")
	build.Dir = filepath.Join("..", "..", "..")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	s := &server{T: t, http: freeAddress(t), keda: freeAddress(t)}
	operators := freeAddress(t)
	s.command = exec.Command(binary, "--prometheus-url", prometheus, "--kubeconfig", c.Kubeconfig, "--kubernetes-lease-namespace", "keda",
		"--grpc-address", s.keda, "--http-address", s.http, "--operators-address", operators, "--prometheus-query-timeout", "14s")
	stderr, err := s.command.StderrPipe()
	require.NoError(t, err)
	s.began = time.Now()
	require.NoError(t, s.command.Start())
	ended := make(chan struct{})
	var last []string
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			last = append(last[max(0, len(last)-40):], lines.Text())
		}
		_ = s.command.Wait() // it is killed
	}()
	connection, err := grpc.NewClient(operators, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	s.operators = wvav1alpha1.NewOperatorServiceClient(connection)
	t.Cleanup(func() {
		_ = connection.Close()
		_ = s.command.Process.Kill()
		<-ended
		if t.Failed() {
			t.Log(strings.Join(last, "\n"))
		}
	})
	return s
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// awaitDecisions waits until so many variants are decided with their load known, and returns how
// long the server took.
func (s *server) awaitDecisions(variants int) time.Duration {
	s.Helper()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		decided, held := s.decided()
		if decided == variants && held == "" {
			return time.Since(s.began)
		}
		require.True(s, time.Now().Before(end), "%d of %d variants have a number; %s", decided, variants, held)
	}
}

// decided returns how many variants have a number, and why one is held, if any is.
func (s *server) decided() (decided int, held string) {
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	for request := new(wvav1alpha1.ListVariantsRequest{PageSize: 2000}); ; {
		page, err := s.operators.ListVariants(ctx, request)
		if err != nil {
			return 0, err.Error()
		}
		for _, v := range page.GetVariants() {
			if v.DesiredReplicas != nil {
				decided++
			}
			if v.GetHeld() {
				held = v.GetName() + " is held: " + v.GetReason() + ", " + v.GetMessage()
			}
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return decided, held
		}
	}
}

// open opens streams as KEDA does, over eight connections.
func (s *server) open(f fleet, count int) {
	s.Helper()
	var clients []externalscaler.ExternalScalerClient
	for range 8 {
		connection, err := grpc.NewClient(s.keda, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(s, err)
		s.Cleanup(func() { _ = connection.Close() })
		clients = append(clients, externalscaler.NewExternalScalerClient(connection))
	}
	for i := range count {
		m, v := i/variantsPerModel%f.models, i%variantsPerModel
		_, err := clients[i%len(clients)].StreamIsActive(s.Context(), &externalscaler.ScaledObjectRef{
			Namespace: namespaceOf(m), Name: variantOf(m, v), ScalerMetadata: map[string]string{"modelID": modelOf(m)},
		})
		require.NoError(s, err)
	}
}

// metric returns the sum of the series of a counter, or of the sums of a histogram.
func (s *server) metric(name string) (sum float64) {
	s.Helper()
	answer, err := http.Get("http://" + s.http + "/metrics")
	require.NoError(s, err)
	defer answer.Body.Close()
	for _, m := range parse(s.T, answer.Body)[name].GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
	}
	return sum
}

// status returns a size of the process in KiB.
func (s *server) status(field string) int {
	s.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
	require.NoError(s, err)
	fields := strings.Fields(string(data))
	size, err := strconv.Atoi(fields[slices.Index(fields, field+":")+1])
	require.NoError(s, err)
	return size
}

// cpuTime returns the processor time that the process has used.
func (s *server) cpuTime() time.Duration {
	s.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.command.Process.Pid))
	require.NoError(s, err)
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+2:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		require.NoError(s, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// apiRequests returns how many requests the API server has answered. Its own are in it, a few in a
// second.
func apiRequests(t *testing.T, c *cluster.Cluster) (sum float64) {
	t.Helper()
	body, err := c.Client.RESTClient().Get().AbsPath("/metrics").Stream(t.Context())
	require.NoError(t, err)
	defer body.Close()
	for _, m := range parse(t, body)["apiserver_request_total"].GetMetric() {
		sum += m.GetCounter().GetValue()
	}
	return sum
}

func parse(t *testing.T, text io.Reader) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	require.NoError(t, err)
	return families
}
