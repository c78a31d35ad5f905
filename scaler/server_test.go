package scaler

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	shuffle "math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/wva-project/wva/fleet"
	wvav1alpha1 "github.com/wva-project/wva/proto/wva/v1alpha1"
)

func TestReflectionListsTheServicesOfEachPort(t *testing.T) {
	w := newWorld(t)
	for _, port := range []struct {
		listener      *bufconn.Listener
		serves, hides string
	}{
		{w.listener, "externalscaler.ExternalScaler", "wva.v1alpha1.OperatorService"},
		{w.private, "wva.v1alpha1.OperatorService", "externalscaler.ExternalScaler"},
	} {
		stream, err := reflectionv1.NewServerReflectionClient(w.dial(port.listener, nil)).ServerReflectionInfo(t.Context())
		require.NoError(t, err)
		ask := func(request *reflectionv1.ServerReflectionRequest) *reflectionv1.ServerReflectionResponse {
			require.NoError(t, stream.Send(request))
			response, err := stream.Recv()
			require.NoError(t, err)
			return response
		}
		var services []string
		list := ask(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
		for _, service := range list.GetListServicesResponse().GetService() {
			services = append(services, service.Name)
		}
		require.Subset(t, services, []string{port.serves, "grpc.health.v1.Health"})
		require.NotContains(t, services, port.hides)
		file := ask(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{
			FileContainingSymbol: port.serves,
		}})
		require.NotEmpty(t, file.GetFileDescriptorResponse().GetFileDescriptorProto())
		require.NoError(t, stream.CloseSend())
		_, err = stream.Recv()
		require.ErrorIs(t, err, io.EOF)
	}
	_, err := wvav1alpha1.NewOperatorServiceClient(w.connect(nil)).ListVariants(t.Context(), &wvav1alpha1.ListVariantsRequest{})
	require.Equal(t, codes.Unimplemented, status.Code(err), "KEDA's port shows no plan")
	_, err = externalscaler.NewExternalScalerClient(w.dial(w.private, nil)).GetMetrics(t.Context(), metricsRequest("a"))
	require.Equal(t, codes.Unimplemented, status.Code(err))
}

func TestServeCutsOffRequestsThatDoNotEndInTime(t *testing.T) {
	w := newWorld(t, func(o *ServerOptions) { o.ShutdownTimeout = time.Millisecond })
	stream, err := reflectionv1.NewServerReflectionClient(w.connect(nil)).ServerReflectionInfo(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}))
	_, err = stream.Recv()
	require.NoError(t, err)
	w.stop() // the client holds its stream open
	require.Contains(t, w.logs.lines(slog.LevelWarn), "WARN requests did not end in time, closing their connections timeout=1ms")
}

func TestServeEndsAtOnceIfItsContextHasEnded(t *testing.T) {
	server, err := NewServer(ServerOptions{Board: NewBoard(BoardOptions{})})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, server.Serve(ctx, bufconn.Listen(1024)))
}

func TestServeReturnsTheErrorOfTheListener(t *testing.T) {
	server, err := NewServer(ServerOptions{Board: NewBoard(BoardOptions{})})
	require.NoError(t, err)
	listener := bufconn.Listen(1024)
	require.NoError(t, listener.Close())
	require.ErrorContains(t, server.Serve(t.Context(), listener), "serving gRPC on bufconn")
}

func TestNewServerNamesTheMissingOptions(t *testing.T) {
	_, err := NewServer(ServerOptions{})
	require.ErrorContains(t, err, "set ServerOptions.Board")
	w := newWorld(t)
	_, err = NewServer(ServerOptions{Board: w.board, Registerer: w.registry})
	require.ErrorContains(t, err, "registering metrics")
}

func TestPlaintextIsLoggedLoudly(t *testing.T) {
	w := newWorld(t)
	require.Len(t, w.logs.lines(slog.LevelWarn), 1)
	require.Contains(t, w.logs.lines(slog.LevelWarn)[0], "without TLS")
}

func TestOnlyHoldersOfAClientCertificateGetAnAnswer(t *testing.T) {
	certificate, pool := selfSigned(t)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	logs := &journal{}
	board := NewBoard(BoardOptions{})
	board.Post(planAt(time.Now(), decided("a", 2)))
	server, err := NewServer(ServerOptions{Board: board, TLS: config, Logger: slog.New(logs)})
	require.NoError(t, err)
	require.Empty(t, logs.lines(slog.LevelWarn))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
	})
	ask := func(creds credentials.TransportCredentials) error {
		conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(creds))
		require.NoError(t, err)
		defer conn.Close()
		_, err = externalscaler.NewExternalScalerClient(conn).GetMetrics(t.Context(), metricsRequest("a"))
		return err
	}
	require.NoError(t, ask(credentials.NewTLS(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}})))
	require.Equal(t, codes.Unavailable, status.Code(ask(credentials.NewTLS(&tls.Config{RootCAs: pool}))))
	require.Equal(t, codes.Unavailable, status.Code(ask(insecure.NewCredentials())))
}

// selfSigned returns a certificate for 127.0.0.1 that is its own authority, for both ends.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// TestTheSameScenarioPushesTheSameInEveryRun drives a loop and a server in virtual time as a demo
// does: the pushes of each instant must not depend on how goroutines happen to run, nor on the
// order in which streams were opened.
func TestTheSameScenarioPushesTheSameInEveryRun(t *testing.T) {
	scenario := func(t *testing.T) []uint64 {
		w := newWorld(t)
		r := newRig(t, w.board)
		client := w.keda()
		var inactives, actives []fleet.Decision
		for i := range 30 {
			name := fmt.Sprintf("v%02d", i)
			inactives, actives = append(inactives, inactive(name, 1)), append(actives, decided(name, 1))
		}
		for _, i := range shuffle.Perm(30) {
			w.listen(client, inactives[i].Variant.Name)
		}
		var pushes []uint64
		for second := range 120 {
			w.step(time.Second)
			if second%15 == 0 {
				r.want(append(inactives[:20-second/10:20-second/10], actives[20-second/10:]...)...)
				require.NoError(t, r.loop.Once(t.Context(), w.clock.Now()))
			}
			w.settle()
			pushes = append(pushes, w.server.Pushes())
		}
		return pushes
	}
	first := scenario(t)
	require.Greater(t, first[len(first)-1], uint64(30))
	for range 3 {
		require.Equal(t, first, scenario(t))
	}
}
