package demo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/wva-project/wva/demo/standin"
	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
)

// callTimeout bounds one call of the stand-in, in real time, so that the demo does not hang. KEDA
// itself sets none.
const callTimeout = 10 * time.Second

// standIn is the stand-in for KEDA and the HPA. It polls the server, receives its pushes, decides
// by the rules of KEDA and of the HPA, and scales the fleet. Its time is virtual. Calls follow one
// another.
type standIn struct {
	connection *grpc.ClientConn
	client     externalscaler.ExternalScalerClient
	objects    []*managed
	scale      func(fleet.VariantID, int)
	replicas   func(fleet.VariantID) int
	received   atomic.Uint64 // pushes of all streams
}

// managed is one ScaledObject with the state of the stand-in.
type managed struct {
	id         fleet.VariantID
	ref        *externalscaler.ScaledObjectRef
	autoscaler *standin.Autoscaler
	pushed     atomic.Bool
	closed     chan struct{} // closed when the stream has ended
	answered   int           // the last number of GetMetrics; -1 before the first
	failures   int           // failed calls
}

func newStandIn(objects []scaledobject.Object, scale func(fleet.VariantID, int), replicas func(fleet.VariantID) int) (*standIn, error) {
	s := &standIn{scale: scale, replicas: replicas}
	for _, object := range objects {
		m, err := manage(object)
		if err != nil {
			return nil, fmt.Errorf("ScaledObject %s: %w", object.Metadata.Name, err)
		}
		s.objects = append(s.objects, m)
	}
	return s, nil
}

// manage returns the state of the stand-in for one object.
func manage(object scaledobject.Object) (*managed, error) {
	autoscaler, err := standin.NewAutoscaler(object)
	if err != nil {
		return nil, err
	}
	return &managed{
		id:         fleet.VariantID{Namespace: object.Metadata.Namespace, Name: object.Metadata.Name},
		ref:        &externalscaler.ScaledObjectRef{Name: object.Metadata.Name, Namespace: object.Metadata.Namespace, ScalerMetadata: object.Spec.Triggers[0].Metadata},
		autoscaler: autoscaler, answered: -1,
	}, nil
}

// connect opens the connection and a push stream for every object, one after the other.
func (s *standIn) connect(ctx context.Context, address string) error {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connecting to the scaler at %s: %w", address, err)
	}
	s.connection, s.client = connection, externalscaler.NewExternalScalerClient(connection)
	s.received.Store(0)
	for _, m := range s.objects {
		if err := s.listen(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// listen opens an object's push stream and returns once the server has it.
func (s *standIn) listen(ctx context.Context, m *managed) error {
	stream, err := s.client.StreamIsActive(ctx, m.ref, grpc.WaitForReady(true))
	if err == nil {
		_, err = stream.Header()
	}
	if err != nil {
		return fmt.Errorf("opening the push stream of %s: %w", m.id, err)
	}
	m.closed = make(chan struct{})
	go func() {
		defer close(m.closed)
		for {
			answer, err := stream.Recv()
			if err != nil { // io.EOF if the server ended it, as KEDA sees it on a restart
				return
			}
			if answer.GetResult() { // KEDA ignores false
				m.pushed.Store(true)
			}
			s.received.Add(1)
		}
	}()
	return nil
}

// disconnect closes the connection, and waits for the end of the streams.
func (s *standIn) disconnect() error {
	if s.connection == nil {
		return nil
	}
	err := s.connection.Close()
	for _, m := range s.objects {
		if m.closed != nil {
			<-m.closed
		}
	}
	s.connection, s.client = nil, nil
	return err
}

// await returns once all pushes that the server sent have arrived.
func (s *standIn) await(ctx context.Context, sent uint64) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for s.received.Load() < sent {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for push %d of %d: %w", s.received.Load()+1, sent, ctx.Err())
		case <-time.After(50 * time.Microsecond):
		}
	}
	return nil
}

// tick is one second of virtual time. Pushes are applied at once, objects are polled at their
// interval, and HPAs sync at theirs.
func (s *standIn) tick(ctx context.Context, second int) error {
	for i, m := range s.objects {
		calls := standin.Calls{
			Metric:   func() (float64, error) { return s.metric(ctx, m) },
			Active:   func() (bool, error) { return s.active(ctx, m) },
			Replicas: func() int { return s.replicas(m.id) },
			Scale:    func(replicas int) { s.scale(m.id, replicas) },
		}
		if m.pushed.Swap(false) {
			m.autoscaler.Push(second, calls)
		}
		m.autoscaler.Tick(second, i, calls)
	}
	return ctx.Err()
}

// errDown is the error of every call while the server does not run.
var errDown = errors.New("the scaler is down")

// metric calls GetMetricSpec and GetMetrics, as KEDA does for each poll and each sync.
func (s *standIn) metric(ctx context.Context, m *managed) (float64, error) {
	if s.client == nil {
		m.failures++
		return 0, errDown
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	specs, err := s.client.GetMetricSpec(ctx, m.ref)
	if err != nil {
		m.failures++
		return 0, err
	}
	if len(specs.GetMetricSpecs()) == 0 {
		m.failures++
		return 0, errors.New("got empty metric spec")
	}
	name := specs.GetMetricSpecs()[0].GetMetricName()
	answer, err := s.client.GetMetrics(ctx, &externalscaler.GetMetricsRequest{ScaledObjectRef: m.ref, MetricName: name})
	if err == nil && len(answer.GetMetricValues()) == 0 {
		err = errors.New("got no metric value")
	}
	if err != nil {
		m.failures++
		return 0, err
	}
	value := answer.GetMetricValues()[0]
	number := value.GetMetricValueFloat()
	if number <= 0 { // KEDA reads the float only if it is positive
		number = float64(value.GetMetricValue())
	}
	m.answered = int(number)
	return number, nil
}

func (s *standIn) active(ctx context.Context, m *managed) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := s.client.IsActive(ctx, m.ref)
	if err != nil {
		m.failures++
		return false, err
	}
	return answer.GetResult(), nil
}
