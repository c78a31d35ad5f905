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

// callTimeout bounds one call of the stand-in, in real time. KEDA itself sets none; a demo that hangs teaches nothing.
const callTimeout = 10 * time.Second

// kube is the stand-in for KEDA and the HPA: it polls the server, listens to its pushes, decides with KEDA's and the HPA's
// own rules, and scales the fleet. It keeps virtual time; every call is over before the next begins.
type kube struct {
	connection *grpc.ClientConn
	client     externalscaler.ExternalScalerClient
	objects    []*managed
	scale      func(fleet.VariantID, int)
	replicas   func(fleet.VariantID) int
	received   atomic.Uint64 // pushes that arrived over all streams
}

// managed is one ScaledObject under the stand-in's care.
type managed struct {
	id       fleet.VariantID
	ref      *externalscaler.ScaledObjectRef
	keda     *simulation.KEDA
	hpa      *simulation.HPA
	polling  int // seconds
	pushed   atomic.Bool
	closed   chan struct{} // closed when the stream has ended
	answered int           // the last number that GetMetrics gave; -1 before the first
	failures int           // calls that were answered with an error
}

func newKube(objects []scaledobject.Object, scale func(fleet.VariantID, int), replicas func(fleet.VariantID) int) (*kube, error) {
	k := &kube{scale: scale, replicas: replicas}
	for _, object := range objects {
		m, err := manage(object)
		if err != nil {
			return nil, fmt.Errorf("ScaledObject %s: %w", object.Metadata.Name, err)
		}
		k.objects = append(k.objects, m)
	}
	return k, nil
}

// manage sets up what KEDA keeps for one object. An HPA never goes below one replica: KEDA itself takes the last step.
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
func (k *kube) connect(ctx context.Context, address string) error {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connecting to the scaler at %s: %w", address, err)
	}
	k.connection, k.client = connection, externalscaler.NewExternalScalerClient(connection)
	k.received.Store(0)
	for _, m := range k.objects {
		if err := k.listen(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// listen opens an object's push stream and returns once the server has it.
func (k *kube) listen(ctx context.Context, m *managed) error {
	stream, err := k.client.StreamIsActive(ctx, m.ref, grpc.WaitForReady(true))
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
			if err != nil { // io.EOF where the server ended it, as KEDA sees it on a restart
				return
			}
			if answer.GetResult() { // KEDA ignores false
				m.pushed.Store(true)
			}
			k.received.Add(1)
		}
	}()
	return nil
}

// disconnect waits for the streams, which the server has ended, and closes the connection.
func (k *kube) disconnect() error {
	if k.connection == nil {
		return nil
	}
	err := k.connection.Close()
	for _, m := range k.objects {
		if m.closed != nil {
			<-m.closed
		}
	}
	k.connection, k.client = nil, nil
	return err
}

// await returns once as many pushes have arrived as the server sent.
func (k *kube) await(ctx context.Context, sent uint64) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for k.received.Load() < sent {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for push %d of %d: %w", k.received.Load()+1, sent, ctx.Err())
		case <-time.After(50 * time.Microsecond):
		}
	}
	return nil
}

// tick is one second of virtual time: pushes are acted on at once, objects polled at their interval, HPAs synced at theirs.
func (k *kube) tick(ctx context.Context, second int) error {
	now := float64(second)
	for i, m := range k.objects {
		if m.pushed.Swap(false) {
			k.set(m, now, m.keda.Push)
		}
		if (second+i)%m.polling == 0 {
			if err := k.poll(ctx, m, now); err != nil {
				return err
			}
		}
		if second%int(simulation.HPASync) == int(simulation.HPASync)/2 {
			if err := k.sync(ctx, m, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// poll is one turn of KEDA's scale loop for one object.
func (k *kube) poll(ctx context.Context, m *managed, now float64) error {
	_, err := k.metric(ctx, m)
	active := false
	if err == nil {
		active, err = k.active(ctx, m)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	current := k.replicas(m.id)
	if replicas, act := m.keda.Poll(now, current, active, err); act && replicas != current {
		k.scale(m.id, replicas)
	}
	return nil
}

// sync is one sync of the HPA, which asks KEDA's adapter for the metric and KEDA asks us.
func (k *kube) sync(ctx context.Context, m *managed, now float64) error {
	current := k.replicas(m.id)
	if current == 0 { // an HPA leaves a workload at zero alone
		return nil
	}
	value, err := k.metric(ctx, m)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var wanted int
	if metric, known := m.keda.Metric(current, 1, value, err); known {
		wanted = m.hpa.Decide(now, current, metric)
	} else {
		wanted = m.hpa.DecideUnmeasured(now, current)
	}
	if wanted != current {
		k.scale(m.id, wanted)
	}
	return nil
}

// set applies what KEDA decides on a push.
func (k *kube) set(m *managed, now float64, decide func(float64, int) (int, bool)) {
	current := k.replicas(m.id)
	if replicas, act := decide(now, current); act && replicas != current {
		k.scale(m.id, replicas)
	}
}

// errDown is what every call is answered with while the server does not run.
var errDown = errors.New("the scaler is down")

// metric asks for the specification and the value of the metric, as KEDA does for each poll and each sync.
func (k *kube) metric(ctx context.Context, m *managed) (float64, error) {
	if k.client == nil {
		m.failures++
		return 0, errDown
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	specs, err := k.client.GetMetricSpec(ctx, m.ref)
	if err != nil {
		m.failures++
		return 0, err
	}
	if len(specs.GetMetricSpecs()) == 0 {
		m.failures++
		return 0, errors.New("got empty metric spec")
	}
	name := specs.GetMetricSpecs()[0].GetMetricName()
	answer, err := k.client.GetMetrics(ctx, &externalscaler.GetMetricsRequest{ScaledObjectRef: m.ref, MetricName: name})
	if err == nil && len(answer.GetMetricValues()) == 0 {
		err = errors.New("got no metric value")
	}
	if err != nil {
		m.failures++
		return 0, err
	}
	value := answer.GetMetricValues()[0]
	number := value.GetMetricValueFloat()
	if number <= 0 { // KEDA reads the float only when it is positive
		number = float64(value.GetMetricValue())
	}
	m.answered = int(number)
	return number, nil
}

func (k *kube) active(ctx context.Context, m *managed) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := k.client.IsActive(ctx, m.ref)
	if err != nil {
		m.failures++
		return false, err
	}
	return answer.GetResult(), nil
}

// behaviorOf returns the HPA's behaviour as the object sets it, filled up with the defaults of Kubernetes.
func behaviorOf(object scaledobject.Object) (*simulation.Behavior, error) {
	if object.Spec.Advanced == nil || object.Spec.Advanced.HorizontalPodAutoscalerConfig == nil {
		return nil, nil
	}
	given := object.Spec.Advanced.HorizontalPodAutoscalerConfig.Behavior
	if given == nil {
		return nil, nil
	}
	behavior := simulation.DefaultBehavior()
	for _, direction := range []struct {
		into *simulation.ScalingRules
		from *scaledobject.Rules
	}{{&behavior.Up, given.ScaleUp}, {&behavior.Down, given.ScaleDown}} {
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
	if tolerance, given := from.Tolerance.Number(); given {
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
