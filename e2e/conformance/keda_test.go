package conformance

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	autoscaling "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// kedaLog is the log of KEDA: its logger is one for the process.
var kedaLog = &journal{grew: make(chan struct{})}

func TestMain(m *testing.M) {
	logf.SetLogger(funcr.New(kedaLog.add, funcr.Options{Verbosity: 1}))
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) // goroutines of KEDA's imports
}

// journal is a log that a test can read and wait for.
type journal struct {
	mu    sync.Mutex
	lines []string
	grew  chan struct{} // closed when a line is added
}

func (j *journal) add(prefix, args string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, prefix+" "+args)
	close(j.grew)
	j.grew = make(chan struct{})
}

// find returns the lines that contain all parts, and a channel that is closed when there may be
// more.
func (j *journal) find(parts ...string) ([]string, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []string
lines:
	for _, line := range j.lines {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue lines
			}
		}
		found = append(found, line)
	}
	return found, j.grew
}

// await returns the lines that contain all parts, as soon as there are so many.
func (j *journal) await(count int, parts ...string) []string {
	for {
		found, grew := j.find(parts...)
		if len(found) >= count {
			return found
		}
		<-grew
	}
}

// trigger is one trigger of a ScaledObject, as KEDA has it. The zero one, with address and names,
// is a usual one.
type trigger struct {
	address, namespace, name string
	metadata                 map[string]string // beside scalerAddress; nil: a usual one
	env, auth                map[string]string
	index                    int
	metricType               autoscaling.MetricTargetType
}

func (k trigger) config() *scalersconfig.ScalerConfig {
	metadata := map[string]string{"modelID": "meta-llama/Llama-3.1-8B-Instruct", "accelerator": "H100", "variantCost": "10"}
	if k.metadata != nil {
		metadata = maps.Clone(k.metadata)
	}
	metadata["scalerAddress"] = k.address
	return &scalersconfig.ScalerConfig{
		ScalableObjectName: k.name, ScalableObjectNamespace: k.namespace, ScalableObjectType: "ScaledObject",
		TriggerType: "external-push", TriggerMetadata: metadata, ResolvedEnv: k.env, AuthParams: k.auth,
		TriggerIndex: k.index, MetricType: k.metricType,
	}
}

// poll returns KEDA's scaler of an external trigger.
func (k trigger) poll(t *testing.T) scalers.Scaler {
	t.Helper()
	s, err := scalers.NewExternalScaler(k.config())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

// metricName is the name under which the HPA asks.
func (k trigger) metricName() string { return "s" + strconv.Itoa(k.index) + "-wva-desired-replicas" }

// answer is the result of one poll, as KEDA reads it.
type answer struct {
	value  resource.Quantity
	active bool
}

// ask polls once, as KEDA's scale loop does.
func (k trigger) ask(t *testing.T) (answer, error) {
	t.Helper()
	metrics, active, err := k.poll(t).GetMetricsAndActivity(t.Context(), k.metricName())
	if err != nil {
		return answer{}, err
	}
	require.Len(t, metrics, 1)
	require.Equal(t, k.metricName(), metrics[0].MetricName)
	return answer{value: metrics[0].Value, active: active}, nil
}

// requireNumber asserts the result of one poll, as KEDA reads it.
func (k trigger) requireNumber(t *testing.T, want int) {
	t.Helper()
	got, err := k.ask(t)
	require.NoError(t, err)
	require.Zero(t, got.value.CmpInt64(int64(want)), "%s is %s, want %d", k.name, got.value.String(), want)
	require.Equal(t, want > 0, got.active, "%s is active if its number is above zero", k.name)
}

// subscription is KEDA's scaler of an external-push trigger while its Run does.
type subscription struct {
	scalers.PushScaler
	active chan bool
	end    func() // ends Run and waits for it; the streams of its object are closed then
}

// specs returns the channel of the metric specs that the server streams. KEDA gets it from its
// scaler in the same way.
func (u *subscription) specs() <-chan []autoscaling.MetricSpec {
	return u.PushScaler.(scalers.MetricSpecStreamer).MetricSpecChan()
}

// subscribe starts KEDA's scaler of a push trigger. Unless the test reads active, it blocks as a
// slow KEDA does.
func (k trigger) subscribe(t *testing.T) *subscription {
	t.Helper()
	s, err := scalers.NewExternalPushScaler(k.config())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	u := &subscription{PushScaler: s, active: make(chan bool)}
	ran := make(chan struct{})
	go func() {
		s.Run(ctx, u.active)
		close(ran)
	}()
	u.end = sync.OnceFunc(func() {
		cancel()
		<-ran
		for range u.specs() { // it is closed when the other stream has ended
		}
		require.NoError(t, s.Close(context.Background()))
	})
	t.Cleanup(u.end)
	return u
}

// logged returns the lines of KEDA about the object that contain all parts.
func (k trigger) logged(parts ...string) []string {
	found, _ := kedaLog.find(k.own(parts)...)
	return found
}

// awaitLog waits for a line of KEDA about the object that contains all parts, and returns it.
func (k trigger) awaitLog(parts ...string) string { return kedaLog.await(1, k.own(parts)...)[0] }

// awaitLines waits for so many of such lines.
func (k trigger) awaitLines(count int, parts ...string) { kedaLog.await(count, k.own(parts)...) }

func (k trigger) own(parts []string) []string {
	return append([]string{`"namespace"="` + k.namespace + `"`, `"name"="` + k.name + `"`}, parts...)
}
