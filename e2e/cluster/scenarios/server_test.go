package scenarios

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

// server is a running wva, as its clients see it.
type server struct {
	testing.TB
	namespace  string
	command    *exec.Cmd
	http       string
	connection *grpc.ClientConn // to KEDA's port
	private    *grpc.ClientConn // to that of operators
	keda       externalscaler.ExternalScalerClient
	operators  wvav1alpha1.OperatorServiceClient
	ended      chan struct{}

	mu  sync.Mutex
	log []string
}

// start starts the server that KEDA calls, with more arguments. It need not be ready when start
// returns.
func (w *world) start(arguments ...string) *server {
	w.Helper()
	return w.startAt(w.port, arguments...)
}

// startAt starts a server on a port.
func (w *world) startAt(port string, arguments ...string) *server {
	w.Helper()
	s := &server{TB: w, namespace: w.namespace, http: "127.0.0.1:" + freePort(w.T), ended: make(chan struct{})}
	operators := "127.0.0.1:" + freePort(w.T)
	s.command = exec.Command(binary, slices.Concat(w.arguments(port, s.http), []string{"--operators-address", operators}, w.scope, arguments)...)
	isCluster := func(entry string) bool { return strings.HasPrefix(entry, "WVA_") }
	s.command.Env = slices.DeleteFunc(os.Environ(), isCluster)
	stderr, err := s.command.StderrPipe()
	require.NoError(w, err)
	require.NoError(w, s.command.Start())
	go s.read(stderr)
	s.connection, err = grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(w, err)
	s.private, err = grpc.NewClient(operators, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(w, err)
	s.keda, s.operators = externalscaler.NewExternalScalerClient(s.connection), wvav1alpha1.NewOperatorServiceClient(s.private)
	w.Cleanup(func() {
		if w.Failed() {
			w.Logf("the last decisions of wva: %v", s.variants())
		}
		s.kill()
		require.NoError(w, s.connection.Close())
		require.NoError(w, s.private.Close())
		if w.Failed() {
			w.Logf("the log of wva:\n%s%s", s.targetChanges(), s.tail())
		}
	})
	return s
}

// The times of every server's cycles.
const (
	interval    = 2 * time.Second
	queryOffset = time.Second
)

// arguments are the settings of every server: windows are seconds instead of minutes.
func (w *world) arguments(port, http string) []string {
	return []string{
		"--prometheus-url", w.player.server.URL, "--kubeconfig", w.kubeconfig, "--grpc-address", "0.0.0.0:" + port, "--http-address", http,
		"--log-format", "json", "--log-level", "debug", "--interval", interval.String(), "--prometheus-query-offset", queryOffset.String(),
		"--prometheus-windows-latest", "6s", "--prometheus-windows-peak", "8s",
		"--prometheus-windows-idle", "10s", "--prometheus-windows-long", "60s", "--scale-up-startup-time", "2s",
		"--scale-down-min-replica-lifetime", "4s", "--missing-data-grace-period", "8s", "--backlog-drain-within", "10s", "--scale-to-zero-retention", "10s",
	}
}

func (s *server) read(stderr io.Reader) {
	defer close(s.ended)
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			_ = s.command.Wait() // it was killed, or a test will notice that it is gone
			return
		}
		s.mu.Lock()
		s.log = append(s.log, line)
		s.mu.Unlock()
	}
}

func (s *server) tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	const most = 60
	return strings.Join(s.log[max(0, len(s.log)-most):], "")
}

// targetChanges returns the lines of the log about changed targets.
func (s *server) targetChanges() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, line := range s.log {
		if strings.Contains(line, `"msg":"target changed"`) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// whole returns the whole log.
func (s *server) whole() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.log, "")
}

// kill ends the server as kill -9 does.
func (s *server) kill() {
	_ = s.command.Process.Kill() // it may have ended
	<-s.ended
}

// awaitReady waits for the first plan.
func (s *server) awaitReady() {
	s.Helper()
	eventually(s, patience, "the server is ready", func() bool {
		answer, err := http.Get("http://" + s.http + "/readyz")
		if err != nil {
			return false
		}
		_ = answer.Body.Close() // nothing is read
		return answer.StatusCode == http.StatusOK
	})
}

// variants returns the variants of the current plan, by name; nil if there is none.
func (s *server) variants() map[string]*wvav1alpha1.Variant {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	plan, err := s.operators.ListVariants(ctx, &wvav1alpha1.ListVariantsRequest{Namespace: s.namespace})
	if err != nil {
		return nil
	}
	found := make(map[string]*wvav1alpha1.Variant)
	for _, v := range plan.GetVariants() {
		found[v.GetName()] = v
	}
	return found
}

// await waits until a variant of the current plan meets a condition.
func (s *server) await(name, condition string, holds func(v *wvav1alpha1.Variant) bool) {
	s.Helper()
	defer func() {
		if s.Failed() {
			s.Logf("%s: %v", name, s.variants()[name])
		}
	}()
	eventually(s, patience, name+" "+condition, func() bool {
		v, found := s.variants()[name]
		return found && holds(v)
	})
}

// desired reads the number of replicas of a variant, as KEDA does.
func (s *server) desired(name string) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := s.keda.GetMetrics(ctx, &externalscaler.GetMetricsRequest{
		ScaledObjectRef: &externalscaler.ScaledObjectRef{Namespace: s.namespace, Name: name}, MetricName: "wva-desired-replicas",
	})
	if err != nil {
		return 0, err
	}
	return int(answer.GetMetricValues()[0].GetMetricValue()), nil
}

// metric returns the sum of the series of a metric.
func (s *server) metric(name string) float64 {
	s.Helper()
	return s.labelled(name, "", "")
}

// labelled returns the sum of those series of a metric that have a label.
func (s *server) labelled(name, label, value string) float64 {
	s.Helper()
	answer, err := http.Get("http://" + s.http + "/metrics")
	require.NoError(s, err)
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	require.NoError(s, err)
	sum := 0.0
	for _, m := range families[name].GetMetric() {
		has := label == ""
		for _, pair := range m.GetLabel() {
			has = has || pair.GetName() == label && pair.GetValue() == value
		}
		if has {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}
