package scaler

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/wva-project/wva/fleet"
)

// endlessPlan is a plan that does not end before the test does.
type endlessPlan struct {
	begun   chan struct{}
	release chan struct{}
	ended   sync.WaitGroup
	work    func(release <-chan struct{})
}

func newEndlessPlan(t testing.TB, work func(release <-chan struct{})) *endlessPlan {
	t.Helper()
	e := &endlessPlan{begun: make(chan struct{}), release: make(chan struct{}), work: work}
	t.Cleanup(func() {
		close(e.release)
		e.ended.Wait()
	})
	return e
}

func (e *endlessPlan) plan(s fleet.Snapshot) fleet.Plan {
	e.ended.Add(1)
	defer e.ended.Done()
	close(e.begun)
	e.work(e.release)
	return planAt(s.Time)
}

// burnAllCores works on every core, and allocates, as a plan of a large fleet does.
func burnAllCores(release <-chan struct{}) {
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for kept := make([][]byte, 1024); ; {
				for i := range kept {
					kept[i] = make([]byte, 512)
				}
				select {
				case <-release:
					return
				default:
				}
			}
		})
	}
	workers.Wait()
}

func TestLoopEndsWhileAPlanIsInProgress(t *testing.T) {
	endless := newEndlessPlan(t, func(release <-chan struct{}) { <-release })
	board := NewBoard(BoardOptions{})
	r := newRig(t, board, func(o *LoopOptions) { o.Plan = endless.plan })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.loop.Run(ctx) }()
	<-endless.begun
	cancel()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("the loop waits for its plan")
	}
	_, posted := board.Plan()
	require.False(t, posted)
}

func TestPlanThatPanicsIsAnError(t *testing.T) {
	r := newRig(t, NewBoard(BoardOptions{}), func(o *LoopOptions) {
		o.Plan = func(fleet.Snapshot) fleet.Plan { panic("one bad row") }
	})
	err := r.loop.Once(t.Context(), start)
	_, crashed := errors.AsType[*panicError](err)
	require.True(t, crashed, err)
}

// probed is a server with a plan on its board, whose next plan burns all cores.
type probed struct {
	keda externalscaler.ExternalScalerClient
	http string
}

func probeDuringPlan(t testing.TB) probed {
	t.Helper()
	procs := runtime.GOMAXPROCS(2)
	t.Cleanup(func() { runtime.GOMAXPROCS(procs) })
	board := NewBoard(BoardOptions{})
	board.Post(planAt(time.Now(), decided("chat", 3)))
	server, err := NewServer(ServerOptions{Board: board})
	require.NoError(t, err)
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	pages := httptest.NewServer(NewHTTPHandler(board, prometheus.NewRegistry()))
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)

	endless := newEndlessPlan(t, burnAllCores)
	loop, err := NewLoop(LoopOptions{
		Board: board, Plan: endless.plan,
		Observe: func(_ context.Context, now time.Time, _ []fleet.PreviousDecision) (fleet.Snapshot, error) {
			return fleet.Snapshot{Time: now}, nil
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(ctx, listener) })
	running.Go(func() { _ = loop.Run(ctx) })
	t.Cleanup(func() {
		_ = conn.Close()
		pages.Close()
		cancel()
		running.Wait()
		http.DefaultClient.CloseIdleConnections()
	})
	<-endless.begun
	return probed{keda: externalscaler.NewExternalScalerClient(conn), http: pages.URL}
}

// ask calls KEDA's RPCs and /readyz once.
func (p probed) ask(ctx context.Context) error {
	ref := &externalscaler.ScaledObjectRef{Namespace: "prod", Name: "chat"}
	_, err := p.keda.GetMetrics(ctx, &externalscaler.GetMetricsRequest{ScaledObjectRef: ref, MetricName: "wva"})
	if err != nil {
		return err
	}
	if _, err = p.keda.IsActive(ctx, ref); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.http+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// The plan ends with the test only, so an answer that waits for it never comes.
func TestServerAnswersWhileAPlanBurnsAllCores(t *testing.T) {
	p := probeDuringPlan(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range 5 {
		require.NoError(t, p.ask(ctx))
	}
}

// BenchmarkAnswersDuringPlan measures two RPCs and /readyz, one after the other, while a plan burns
// both cores. The bar: 250 ms for one of them.
func BenchmarkAnswersDuringPlan(b *testing.B) {
	p := probeDuringPlan(b)
	var took []float64 // ms
	for b.Loop() {
		begun := time.Now()
		require.NoError(b, p.ask(b.Context()))
		took = append(took, time.Since(begun).Seconds()*1e3)
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "p50-ms")
	b.ReportMetric(took[len(took)*99/100], "p99-ms")
	b.ReportMetric(took[len(took)-1], "max-ms(bar<=250)")
}
