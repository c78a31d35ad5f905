package prometheus

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/wva-project/wva/fleet"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

const (
	// interval is the time between two decisions of a server.
	interval = 2 * time.Second
	// lag is how far behind the present a server asks.
	lag = time.Second
)

// server is a running wva, as its clients see it.
type server struct {
	*process
	grpc, http string           // addresses
	connection *grpc.ClientConn // to KEDA's port
	keda       externalscaler.ExternalScalerClient
	operators  wvav1alpha1.OperatorServiceClient
}

// start starts a server, with more arguments, and returns once its ports are open.
func (w *world) start(arguments ...string) *server {
	w.Helper()
	s, opened := &server{}, make(chan struct{})
	var operators string
	announce := sync.OnceFunc(func() { close(opened) })
	s.process = run(w, func(line string) {
		var entry struct{ Msg, GRPC, Operators, HTTP string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "starting" {
			s.grpc, s.http, operators = entry.GRPC, entry.HTTP, entry.Operators
			announce()
		}
	}, w.binary, append(w.arguments(), arguments...)...)
	select {
	case <-opened:
	case <-s.ended:
		w.Fatalf("wva ended at start:\n%s", s.tail())
	}
	var err error
	s.connection, err = grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(w, err)
	toOperators, err := grpc.NewClient(operators, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(w, err)
	w.Cleanup(func() {
		require.NoError(w, s.connection.Close())
		require.NoError(w, toOperators.Close())
	})
	s.keda, s.operators = externalscaler.NewExternalScalerClient(s.connection), wvav1alpha1.NewOperatorServiceClient(toOperators)
	return s
}

// arguments are the settings of every server: windows are seconds instead of minutes.
func (w *world) arguments() []string {
	return []string{
		"--prometheus-url", w.proxy.URL, "--prometheus-ca-file", w.proxy.caFile, "--prometheus-bearer-token-file", w.proxy.tokenFile,
		"--manifests", w.manifests.directory, "--grpc-address", "127.0.0.1:0", "--operators-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0",
		"--log-format", "json", "--log-level", "debug", "--interval", interval.String(), "--prometheus-query-offset", lag.String(),
		"--prometheus-windows-latest", "8s", "--prometheus-windows-peak", "15s",
		"--prometheus-windows-idle", "30s", "--prometheus-windows-long", "60s", "--scale-up-startup-time", "3s",
		"--scale-down-min-replica-lifetime", "5s", "--missing-data-grace-period", "10s", "--backlog-drain-within", "10s",
	}
}

// ready asks the probe.
func (s *server) ready() bool {
	answer, err := http.Get("http://" + s.http + "/readyz")
	if err != nil {
		return false
	}
	_ = answer.Body.Close() // nothing is read
	return answer.StatusCode == http.StatusOK
}

func (s *server) awaitReady() {
	s.Helper()
	eventually(s, "the server is ready", s.ready)
}

func reference(v fleet.VariantID) *externalscaler.ScaledObjectRef {
	return &externalscaler.ScaledObjectRef{Name: v.Name, Namespace: v.Namespace}
}

// desired asks for the number of replicas, as KEDA does.
func (s *server) desired(v fleet.VariantID) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	specs, err := s.keda.GetMetricSpec(ctx, reference(v))
	if err != nil {
		return 0, err
	}
	metrics, err := s.keda.GetMetrics(ctx, &externalscaler.GetMetricsRequest{
		ScaledObjectRef: reference(v), MetricName: specs.GetMetricSpecs()[0].GetMetricName(),
	})
	if err != nil {
		return 0, err
	}
	return int(metrics.GetMetricValues()[0].GetMetricValue()), nil
}

// plan asks for the current plan.
func (s *server) plan() (*wvav1alpha1.ListVariantsResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.operators.ListVariants(ctx, &wvav1alpha1.ListVariantsRequest{})
}

// variant returns a variant of the current plan; nil if it is not there.
func (s *server) variant(id fleet.VariantID) *wvav1alpha1.Variant {
	plan, err := s.plan()
	if err != nil {
		return nil
	}
	for _, v := range plan.GetVariants() {
		if v.GetName() == id.Name && v.GetNamespace() == id.Namespace {
			return v
		}
	}
	return nil
}

// awaitDecision returns once the capacity of the variant's replicas is known and its number of
// replicas is derived from it.
func (s *server) awaitDecision(id fleet.VariantID) {
	s.Helper()
	var v *wvav1alpha1.Variant
	defer func() {
		if s.Failed() {
			s.Log(v)
		}
	}()
	eventually(s, id.Name+" is decided", func() bool {
		v = s.variant(id)
		return v != nil && !v.GetHeld() && v.CapacityShare != nil
	})
}

// awaitHeld returns once the variant is held, and the reason with its details.
func (s *server) awaitHeld(id fleet.VariantID) (reason string) {
	s.Helper()
	eventually(s, id.Name+" is held", func() bool {
		v := s.variant(id)
		reason = v.GetMessage()
		for _, detail := range v.GetDetails() {
			reason += "; " + detail.GetText()
		}
		return v.GetHeld()
	})
	return reason
}

// subscribe opens the push stream of a variant, and returns how it ends: io.EOF if the server ends
// it with nil.
func (s *server) subscribe(t *testing.T, id fleet.VariantID) <-chan error {
	t.Helper()
	stream, err := s.keda.StreamIsActive(t.Context(), reference(id), grpc.WaitForReady(true))
	require.NoError(t, err)
	_, err = stream.Header()
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := stream.Recv(); err != nil {
				ended <- err
				return
			}
		}
	}()
	return ended
}

// requireEndsWithNil asserts that the server has ended a stream without an error.
func requireEndsWithNil(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, io.EOF)
	case <-time.After(patience):
		require.Fail(t, "the stream has not ended")
	}
}
