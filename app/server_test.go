package app

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/wva-project/wva/config"
	"github.com/wva-project/wva/demo/promstore"
	"github.com/wva-project/wva/fleet"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

func (s *started) dial(t *testing.T, secured credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	return dial(t, s.grpc, secured)
}

func dial(t *testing.T, address string, secured credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(secured))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, connection.Close()) })
	return connection
}

func (s *started) get(t *testing.T, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.http+path, nil)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

// metric returns the value of a series of the server's own metrics.
func (s *started) metric(t *testing.T, series string) float64 {
	t.Helper()
	_, page := s.get(t, "/metrics")
	_, after, found := strings.Cut(page, "\n"+series+" ")
	require.True(t, found, "no series %s", series)
	text, _, _ := strings.Cut(after, "\n")
	value, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return value
}

func metricsOf(name string) *externalscaler.GetMetricsRequest {
	return &externalscaler.GetMetricsRequest{ScaledObjectRef: reference(name), MetricName: "wva"}
}

func reference(name string) *externalscaler.ScaledObjectRef {
	return &externalscaler.ScaledObjectRef{Namespace: "llm", Name: name, ScalerMetadata: map[string]string{"modelID": model}}
}

func TestServerAnswersFromPrometheusAndManifestsUntilItIsStopped(t *testing.T) {
	w := newWorld(t)
	w.variant("chat", 2, "1")
	now := time.Now()
	w.load("chat-5f-0", now, 20, 2)
	w.load("chat-5f-1", now, 20, 2)
	s := w.start()
	s.log.await("first plan posted")

	connection := s.dial(t, insecure.NewCredentials())
	keda := externalscaler.NewExternalScalerClient(connection)
	answer, err := keda.GetMetrics(t.Context(), metricsOf("chat"))
	require.NoError(t, err)
	require.Len(t, answer.GetMetricValues(), 1)
	require.GreaterOrEqual(t, answer.GetMetricValues()[0].GetMetricValue(), int64(1))
	active, err := keda.IsActive(t.Context(), reference("chat"))
	require.NoError(t, err)
	require.True(t, active.GetResult())
	listed, err := wvav1alpha1.NewOperatorServiceClient(dial(t, s.operators, insecure.NewCredentials())).ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
	require.NoError(t, err)
	require.Len(t, listed.GetVariants(), 1)
	chat := listed.GetVariants()[0]
	require.False(t, chat.GetHeld(), chat.GetMessage())
	require.Equal(t, int32(2), chat.GetReadyReplicas())
	require.NotNil(t, chat.Saturation)

	code, _ := s.get(t, "/readyz")
	require.Equal(t, http.StatusOK, code)
	code, _ = s.get(t, "/healthz")
	require.Equal(t, http.StatusOK, code)
	for _, name := range []string{
		`wva_desired_replicas{accelerator="L40S",model="` + model + `",namespace="llm",target_kind="Deployment",target_name="chat"}`,
		`wva_collector_queries_total{query="gauges",result="success"}`, `wva_cycles_total{result="ok"}`, "go_goroutines", "process_start_time_seconds",
	} {
		require.Positive(t, s.metric(t, name), name)
	}

	stream, err := keda.StreamIsActive(t.Context(), reference("chat"))
	require.NoError(t, err)
	_, err = stream.Header()
	require.NoError(t, err)
	require.NoError(t, s.stop())
	_, err = stream.Recv()
	require.ErrorIs(t, err, io.EOF, "streams end without an error")
	s.log.await("stopped")
}

func TestServerHoldsWhilePrometheusIsDownAndLogsItOnce(t *testing.T) {
	w := newWorld(t)
	w.variant("chat", 3, "1")
	w.url = "http://127.0.0.1:1"
	s := w.start()
	for ready, said := false, false; !ready || !said; { // in either order
		line := s.log.next()
		switch message, _ := line["msg"].(string); {
		case strings.HasPrefix(message, "first plan posted"):
			ready = true
		case message == "prometheus unreachable":
			said = true
			require.Contains(t, line["reason"], "http://127.0.0.1:1 unreachable: connection refused; check the address")
		}
	}
	keda := externalscaler.NewExternalScalerClient(s.dial(t, insecure.NewCredentials()))
	answer, err := keda.GetMetrics(t.Context(), metricsOf("chat"))
	require.NoError(t, err)
	require.Equal(t, int64(3), answer.GetMetricValues()[0].GetMetricValue(), "the replicas stay")

	require.NoError(t, s.loop.Once(t.Context(), time.Now()))
	require.NoError(t, s.loop.Once(t.Context(), time.Now()))
	require.NoError(t, s.stop())
	for {
		line := s.log.next()
		require.NotContains(t, line["msg"], "prometheus unreachable", "it was logged already")
		if line["msg"] == "stopped" {
			break
		}
	}
}

// next returns the next line.
func (j *journal) next() map[string]any {
	j.Helper()
	line, open := <-j.lines
	if !open {
		j.Fatal("the log ended")
	}
	return line
}

func TestServerWakesAModelForAQueueAtTheGateway(t *testing.T) {
	w := newWorld(t)
	w.variant("chat", 0, "1")
	now := time.Now().Truncate(15 * time.Second).Add(2 * time.Second)
	queue := func(second int, length float64) {
		labels := promstore.Labels("namespace", "llm", "model_name", model, "pod", "gateway-0")
		require.NoError(t, w.store.Scrape("gateway", now.Add(time.Duration(second)*time.Second), []promstore.Sample{
			{Name: "inference_extension_flow_control_queue_size", Labels: labels, Value: length},
			{Name: "inference_objective_request_total", Labels: labels, Value: 7},
		}))
	}
	for second := -900; second <= 0; second += 5 {
		queue(second, 0)
	}
	s, err := w.newServer(w.config(), io.Discard)
	require.NoError(t, err)
	defer s.settings.Load().close()
	wanted := func() int {
		decision, found := s.board.Lookup(fleet.VariantID{Namespace: "llm", Name: "chat"})
		require.True(t, found)
		require.True(t, decision.Known)
		return decision.Replicas
	}
	require.NoError(t, s.loop.Once(t.Context(), now))
	require.Zero(t, wanted())
	wake, err := s.poller.Poll(t.Context(), now.Add(time.Second))
	require.NoError(t, err)
	require.False(t, wake)

	queue(5, 3)
	wake, err = s.poller.Poll(t.Context(), now.Add(6*time.Second))
	require.NoError(t, err)
	require.True(t, wake)
	require.NoError(t, s.loop.Once(t.Context(), now.Add(6*time.Second)), "before the regular queries show the queue")
	require.Positive(t, wanted())
}

func TestServerReloadsItsConfigurationAndRejectsAnInvalidOne(t *testing.T) {
	w := newWorld(t)
	w.variant("chat", 1, "1")
	path := filepath.Join(t.TempDir(), "wva.yaml")
	write := func(text string) {
		require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
	write("")
	s := w.start("--config", path)
	s.log.await("first plan posted")
	require.Equal(t, 10*time.Minute, s.settings.Load().policy.Retention)

	write("scaleToZero: {retention: 20m}\ninterval: 30s\nsaturation: {kvThreshold: 0.7}\ngrpc: {address: ':7'}\nmaxPlanAge: 10m\nprometheus: {queryOffset: 3s}")
	require.Equal(t, []any{"interval", "maxPlanAge", "saturation.kvThreshold", "scaleToZero.retention"}, s.log.await("configuration reloaded")["changed"])
	require.Equal(t, []any{"prometheus.queryOffset"}, s.log.await("restart required for changed settings")["settings"], "the address is given by a flag")
	require.InDelta(t, 1, s.metric(t, `wva_cycle_triggers_total{reason="configuration"}`), 0, "a cycle follows at once")
	current := s.settings.Load()
	require.Equal(t, 20*time.Minute, current.policy.Retention)
	require.InDelta(t, 0.7, current.policy.Saturation.KVThreshold, 0)
	require.Equal(t, 30*time.Second, current.config.Interval)
	require.Equal(t, 10*time.Minute, s.board.MaxAge())

	write("interval: never")
	require.Contains(t, s.log.await("configuration rejected, keeping the previous one")["errors"], `interval: "never" is not a duration`)
	require.Same(t, current, s.settings.Load())

	notPEM := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(notPEM, []byte("x"), 0o600))
	write("prometheus: {caFile: " + notPEM + "}")
	require.Contains(t, s.log.await("configuration rejected, keeping the previous one")["errors"], "PEM")
	require.Same(t, current, s.settings.Load())
}

func TestServerSeesManifestsThatChange(t *testing.T) {
	w := newWorld(t)
	w.variant("chat", 1, "1")
	s := w.start()
	s.log.await("first plan posted")
	w.variant("more", 2, "2")
	for held := 0.0; held < 2; {
		held, _ = s.log.await("cycle done")["held"].(float64)
	}
	decision, found := s.board.Lookup(fleet.VariantID{Namespace: "llm", Name: "more"})
	require.True(t, found)
	require.Equal(t, 2, decision.Replicas)
	require.InDelta(t, 1, s.metric(t, `wva_cycle_triggers_total{reason="manifests"}`), 0)
}

func TestServerIsNotReadyOnceItStops(t *testing.T) {
	w := newWorld(t)
	s, err := w.newServer(w.config(), io.Discard)
	require.NoError(t, err)
	defer s.settings.Load().close()
	ctx, cancel := context.WithCancel(t.Context())
	ready := func() (int, string) {
		answer := httptest.NewRecorder()
		s.handler(ctx).ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
		return answer.Code, answer.Body.String()
	}
	code, why := ready()
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, why, "nothing is decided yet")
	require.NoError(t, s.loop.Once(t.Context(), time.Now()))
	code, _ = ready()
	require.Equal(t, http.StatusOK, code)
	cancel()
	code, why = ready()
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "shutting down\n", why)
}

func TestServerServesTLSToClientsThatAreAllowed(t *testing.T) {
	w := newWorld(t)
	w.variant("chat", 2, "1")
	files := newCertificates(t)
	s := w.start("--grpc-tls-cert-file", files.path("server.pem"), "--grpc-tls-key-file", files.path("server.key"),
		"--grpc-tls-client-ca-file", files.path("ca.pem"), "--grpc-tls-allowed-clients", "keda-operator")
	s.log.await("first plan posted")
	ask := func(secured credentials.TransportCredentials) error {
		_, err := externalscaler.NewExternalScalerClient(s.dial(t, secured)).GetMetrics(t.Context(), metricsOf("chat"))
		return err
	}
	require.NoError(t, ask(credentials.NewTLS(files.client(t, "keda"))))
	require.Error(t, ask(credentials.NewTLS(files.client(t, "stranger"))))
	require.Error(t, ask(credentials.NewTLS(&tls.Config{RootCAs: files.authorities, MinVersion: tls.VersionTLS12})), "without a certificate")
	require.Error(t, ask(insecure.NewCredentials()))
}

func TestOperatorsHaveClientNamesOfTheirOwn(t *testing.T) {
	w := newWorld(t)
	w.variant("chat", 2, "1")
	files := newCertificates(t)
	secured := []string{
		"--grpc-tls-cert-file", files.path("server.pem"), "--grpc-tls-key-file", files.path("server.key"),
		"--grpc-tls-client-ca-file", files.path("ca.pem"), "--grpc-tls-allowed-clients", "keda-operator",
	}
	ask := func(s *started, secured credentials.TransportCredentials) error {
		_, err := wvav1alpha1.NewOperatorServiceClient(dial(t, s.operators, secured)).ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
		return err
	}
	exposed := w.start(append(secured, "--operators-address", "0.0.0.0:0", "--operators-allowed-clients", "stranger")...)
	exposed.log.await("first plan posted")
	_, port, err := net.SplitHostPort(exposed.operators)
	require.NoError(t, err)
	exposed.operators = "127.0.0.1:" + port
	require.NoError(t, ask(exposed, credentials.NewTLS(files.client(t, "stranger"))))
	require.Error(t, ask(exposed, credentials.NewTLS(files.client(t, "keda"))), "KEDA is no operator")
	require.Error(t, ask(exposed, insecure.NewCredentials()))

	private := w.start(secured...)
	private.log.await("first plan posted")
	require.NoError(t, ask(private, insecure.NewCredentials()), "the loopback asks for no certificate")
	_, err = wvav1alpha1.NewOperatorServiceClient(private.dial(t, credentials.NewTLS(files.client(t, "keda")))).ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
	require.Equal(t, codes.Unimplemented, status.Code(err), "KEDA's port shows no plan")
}

func TestEveryErrorOfTheWiringIsReportedAtOnce(t *testing.T) {
	w := newWorld(t)
	notPEM := filepath.Join(t.TempDir(), "x.pem")
	require.NoError(t, os.WriteFile(notPEM, []byte("x"), 0o600))
	c := w.config("--prometheus-ca-file", notPEM, "--grpc-tls-cert-file", notPEM, "--grpc-tls-key-file", notPEM)
	require.NoError(t, os.Remove(w.manifests))
	_, err := w.newServer(c, io.Discard)
	require.ErrorContains(t, err, "authorities of Prometheus' certificate")
	require.ErrorContains(t, err, "TLS of the server")
	require.ErrorContains(t, err, "directory of manifests")
}

func TestAPortInUseIsReportedWithTheSettingToChange(t *testing.T) {
	w := newWorld(t)
	taken := httptest.NewServer(http.NotFoundHandler())
	defer taken.Close()
	s, err := w.newServer(w.config("--http-address", strings.TrimPrefix(taken.URL, "http://")), io.Discard)
	require.NoError(t, err)
	require.ErrorContains(t, s.Run(t.Context()), "address already in use; set http.address to a free address")
}

func TestInvalidDefinitionsAreHeldWithTheirErrors(t *testing.T) {
	w := newWorld(t)
	w.variant("chat", 3, "cheap")
	s, err := w.newServer(w.config(), io.Discard)
	require.NoError(t, err)
	defer s.settings.Load().close()
	require.NoError(t, s.loop.Once(t.Context(), time.Now()))
	decision, found := s.board.Lookup(fleet.VariantID{Namespace: "llm", Name: "chat"})
	require.True(t, found)
	require.True(t, decision.Held)
	require.Equal(t, 3, decision.Replicas)
	require.Equal(t, fleet.CodeInvalidDefinition, decision.Reason.Code)
	require.Contains(t, decision.Reason.Text, `variantCost "cheap"`)
}

func TestLogHasTheFormAndLevelOfTheConfiguration(t *testing.T) {
	var text strings.Builder
	logger, level := NewLogger(&text, config.Log{Level: slog.LevelWarn, Format: config.FormatText})
	logger.Info("quiet")
	logger.Warn("loud")
	level.Set(slog.LevelInfo)
	logger.Info("louder")
	require.NotContains(t, text.String(), "quiet")
	require.Regexp(t, `level=WARN msg=loud\n.*level=INFO msg=louder\n`, text.String())
}
