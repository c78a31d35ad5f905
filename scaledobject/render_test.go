package scaledobject

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/wva-project/wva/fleet"
)

// randomVariant returns a variant that Read can return.
func randomVariant(random *rand.Rand) fleet.Variant {
	maybe := func(text string) string { return text[:len(text)*random.IntN(2)] }
	v := fleet.Variant{
		ID:             fleet.VariantID{Namespace: "team", Name: fmt.Sprintf("v-%d.x", random.IntN(100))},
		Model:          fleet.ModelID{Namespace: "team", Name: "org/Model é \"7B\""},
		Target:         fleet.TargetID{Namespace: "team", APIVersion: "apps/v1", Kind: "StatefulSet", Name: "engine"},
		ServedName:     maybe("m7"),
		Accelerator:    fleet.Accelerator(maybe("NVIDIA-H100-80GB-HBM3")),
		Precision:      maybe("fp8_e4m3"),
		GPUsPerReplica: 1 + random.IntN(maxGPUs),
		Cost:           []float64{0, 10, random.Float64(), random.Float64() * maxCost, 1e-300, maxCost}[random.IntN(6)],
		ServiceClass:   maybe("gold"),
		Role:           []fleet.Role{fleet.RoleBoth, fleet.RolePrefill, fleet.RoleDecode}[random.IntN(3)],
		Engine:         engineNames()[random.IntN(len(engineNames()))],
		Range:          fleet.Range{Min: random.IntN(20)},
		Cooldown:       time.Duration(random.IntN(2)*random.IntN(4000)) * time.Second,
	}
	v.Range.Max = max(1, v.Range.Min+random.IntN(50))
	if v.Range.Min > 0 && random.IntN(2) == 0 {
		v.Range.AllowsIdle, v.Range.Idle = true, random.IntN(v.Range.Min)
	}
	v.Objective.TTFT = time.Duration(random.IntN(2)) * time.Duration(1+random.Int64N(int64(maxDuration)))
	v.Objective.ITL = time.Duration(random.IntN(2)) * time.Duration(1+random.Int64N(int64(maxDuration)))
	if v.Objective != (fleet.Objective{}) || random.IntN(2) == 0 {
		v.Objective.Percentile = []float64{DefaultPercentile, 0.99, 1 - random.Float64()/2 - 1e-9}[random.IntN(3)]
	}
	if random.IntN(2) == 0 {
		v.ScaleToZeroAfter = minRetention + time.Duration(random.Int64N(int64(maxRetention-minRetention)+1))
	}
	if random.IntN(2) == 0 {
		v.Profile = randomCost(random)
	}
	v.Pause = fleet.Pause{In: random.IntN(4) == 0, Out: random.IntN(4) == 0, Awake: random.IntN(4) == 0, All: random.IntN(4) == 0}
	if v.Pause.All && random.IntN(2) == 0 {
		v.Pause.Fixed, v.Pause.Replicas = true, random.IntN(20)
	}
	if random.IntN(2) == 0 {
		v.Created = time.Unix(random.Int64N(1<<33), 0).UTC()
	}
	return v
}

// randomCost returns figures within their bounds, some of them at a bound.
func randomCost(random *rand.Rand) (cost fleet.EngineCost) {
	for _, figure := range fleet.CostFigures() {
		within := figure.Lowest + random.Float64()*(figure.Highest-figure.Lowest)
		*figure.Of(&cost) = []float64{figure.Lowest, figure.Highest, within}[random.IntN(3)]
	}
	return cost
}

func TestReadIsTheInverseOfRender(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		want := randomVariant(random)
		o := Render(want, RenderOptions{Authentication: "mtls"})
		got, err := Read(o)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read back\n%+v, %v\nwant\n%+v", got, err, want)
		}
		alone := want.Objective.Percentile > 0 && want.Objective.TTFT == 0 && want.Objective.ITL == 0
		if findings := Lint(o); (findings != nil) != alone || alone && findings[0].Code != fleet.CodePercentileWithoutLimits {
			t.Fatalf("the recommended object of %+v has findings %v", want, findings)
		}
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var decoded Object
		if err := json.Unmarshal(data, &decoded); err != nil || !reflect.DeepEqual(decoded, o) {
			t.Fatalf("the JSON form does not round-trip (%v):\n%+v\n%+v", err, decoded, o)
		}
	}
}

func TestRenderHasAFallbackOnlyIfItStartsNothing(t *testing.T) {
	for _, test := range []struct {
		give fleet.Range
		want *Fallback
	}{
		{fleet.Range{Min: 0, Max: 4}, nil},
		{fleet.Range{Min: 2, Max: 4, AllowsIdle: true}, nil},
		{fleet.Range{Min: 2, Max: 4}, &Fallback{3, 2, "currentReplicasIfHigher"}},
		{fleet.Range{Min: 3, Max: 4, Idle: 1, AllowsIdle: true}, &Fallback{3, 3, "currentReplicasIfHigher"}},
	} {
		if got := Render(fleet.Variant{Range: test.give}, RenderOptions{}).Spec.Fallback; !reflect.DeepEqual(got, test.want) {
			t.Errorf("fallback of %+v is %+v, want %+v", test.give, got, test.want)
		}
	}
}

func TestRenderAppliesItsOptions(t *testing.T) {
	o := Render(fleet.Variant{}, RenderOptions{ScalerAddress: "a:1", PollingInterval: time.Minute, Authentication: "mtls"})
	if trigger := o.Spec.Triggers[0]; trigger.Metadata["scalerAddress"] != "a:1" || trigger.AuthenticationRef.Name != "mtls" || *o.Spec.PollingInterval != 60 {
		t.Errorf("rendered %+v, polling %d", trigger, *o.Spec.PollingInterval)
	}
	o = Render(fleet.Variant{}, RenderOptions{ClusterAuthentication: "wva"})
	if got, want := *o.Spec.Triggers[0].AuthenticationRef, (AuthenticationRef{Name: "wva", Kind: "ClusterTriggerAuthentication"}); got != want {
		t.Errorf("authentication %+v, want %+v", got, want)
	}
	o = Render(fleet.Variant{}, RenderOptions{})
	if trigger := o.Spec.Triggers[0]; trigger.Metadata["scalerAddress"] != "wva.keda.svc:9090" || trigger.AuthenticationRef != nil || *o.Spec.PollingInterval != 10 {
		t.Errorf("rendered by default %+v, polling %d", trigger, *o.Spec.PollingInterval)
	}
}
