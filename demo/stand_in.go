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

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/scaledobject"
	"github.com/wva-project/wva/simulation"
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
	id       fleet.VariantID
	ref      *externalscaler.ScaledObjectRef
	keda     *simulation.KEDA
	hpa      *simulation.HPA
	polling  int // seconds
	pushed   atomic.Bool
	closed   chan struct{} // closed when the stream has ended
	answered int           // the last number of GetMetrics; -1 before the first
	failures int           // failed calls
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

// manage returns the state of KEDA and the HPA for one object. An HPA never scales below one
// replica: KEDA itself scales to zero.
func manage(object scaledobject.Object) (*managed, error) {
	spec := simulation.DefaultKEDASpec()
	setSeconds := func(into *float64, from *int64) {
		if from != nil {
			*into = float64(*from)
		}
	}
	setSeconds(&spec.PollingInterval, object.Spec.PollingInterval)
	setSeconds(&spec.Cooldown, object.Spec.CooldownPeriod)
	if n := object.Spec.MinReplicaCount; n != nil {
		spec.Min = int(*n)
	}
	if n := object.Spec.MaxReplicaCount; n != nil {
		spec.Max = int(*n)
	}
	if n := object.Spec.IdleReplicaCount; n != nil {
		spec.Idle, spec.HasIdle = int(*n), true
	}
	if f := object.Spec.Fallback; f != nil {
		spec.Fallback = &simulation.Fallback{FailureThreshold: int(f.FailureThreshold), Replicas: int(f.Replicas), Behavior: simulation.FallbackBehavior(f.Behavior)}
	}
	keda, err := simulation.NewKEDA(spec)
	if err != nil {
		return nil, err
	}
	behavior, err := behaviorOf(object)
	if err != nil {
		return nil, err
	}
	hpa, err := simulation.NewHPA(keda.HPASpec(1, behavior))
	if err != nil {
		return nil, err
	}
	return &managed{
		id:   fleet.VariantID{Namespace: object.Metadata.Namespace, Name: object.Metadata.Name},
		ref:  &externalscaler.ScaledObjectRef{Name: object.Metadata.Name, Namespace: object.Metadata.Namespace, ScalerMetadata: object.Spec.Triggers[0].Metadata},
		keda: keda, hpa: hpa, polling: max(1, int(spec.PollingInterval)), answered: -1,
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
	now := float64(second)
	for i, m := range s.objects {
		if m.pushed.Swap(false) {
			s.set(m, now, m.keda.Push)
		}
		if (second+i)%m.polling == 0 {
			if err := s.poll(ctx, m, now); err != nil {
				return err
			}
		}
		if second%int(simulation.HPASync) == int(simulation.HPASync)/2 {
			if err := s.sync(ctx, m, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// poll is one iteration of KEDA's scale loop for one object.
func (s *standIn) poll(ctx context.Context, m *managed, now float64) error {
	_, err := s.metric(ctx, m)
	active := false
	if err == nil {
		active, err = s.active(ctx, m)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	current := s.replicas(m.id)
	if replicas, act := m.keda.Poll(now, current, active, err); act && replicas != current {
		s.scale(m.id, replicas)
	}
	return nil
}

// sync is one sync of the HPA. It gets the metric from KEDA's adapter, which calls the scaler.
func (s *standIn) sync(ctx context.Context, m *managed, now float64) error {
	current := s.replicas(m.id)
	if current == 0 { // an HPA does not scale a workload at zero
		return nil
	}
	value, err := s.metric(ctx, m)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var replicas int
	if metric, known := m.keda.Metric(current, 1, value, err); known {
		replicas = m.hpa.Decide(now, current, metric)
	} else {
		replicas = m.hpa.DecideUnmeasured(now, current)
	}
	if replicas != current {
		s.scale(m.id, replicas)
	}
	return nil
}

// set applies KEDA's decision on a push.
func (s *standIn) set(m *managed, now float64, decide func(float64, int) (int, bool)) {
	current := s.replicas(m.id)
	if replicas, act := decide(now, current); act && replicas != current {
		s.scale(m.id, replicas)
	}
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

// behaviorOf returns the HPA's behavior of the object, completed with the defaults of Kubernetes.
func behaviorOf(object scaledobject.Object) (*simulation.Behavior, error) {
	if object.Spec.Advanced == nil || object.Spec.Advanced.HorizontalPodAutoscalerConfig == nil {
		return nil, nil
	}
	own := object.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior
	if own == nil {
		return nil, nil
	}
	behavior := simulation.DefaultBehavior()
	for _, direction := range []struct {
		into *simulation.ScalingRules
		from *scaledobject.Rules
	}{{&behavior.Up, own.ScaleUp}, {&behavior.Down, own.ScaleDown}} {
		if err := fillRules(direction.into, direction.from); err != nil {
			return nil, err
		}
	}
	return &behavior, nil
}

func fillRules(into *simulation.ScalingRules, from *scaledobject.Rules) error {
	if from == nil {
		return nil
	}
	if from.StabilizationWindowSeconds != nil {
		into.Stabilization = float64(*from.StabilizationWindowSeconds)
	}
	if tolerance, valid := from.Tolerance.Number(); valid {
		into.Tolerance = tolerance
	} else if from.Tolerance.Text != "" {
		return fmt.Errorf("tolerance %q is no quantity; write it as \"0.05\"", from.Tolerance.Text)
	}
	if len(from.Policies) > 0 {
		into.Policies = nil
	}
	for _, p := range from.Policies {
		into.Policies = append(into.Policies, simulation.ScalingPolicy{Type: simulation.PolicyType(p.Type), Value: int(p.Value), Period: float64(p.PeriodSeconds)})
	}
	if from.SelectPolicy != "" {
		into.Select = simulation.SelectPolicy(from.SelectPolicy)
	}
	return nil
}
