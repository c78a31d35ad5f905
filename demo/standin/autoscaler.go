package standin

import (
	"github.com/wva-project/wva/scaledobject"
	"github.com/wva-project/wva/simulation"
)

// Autoscaler is KEDA and the HPA of one ScaledObject. It decides by their rules, with the answers
// of the object's scaler.
type Autoscaler struct {
	keda     *simulation.KEDA
	hpa      *simulation.HPA
	interval int // between two polls, in seconds
}

// Calls are the calls of an autoscaler: to the scaler, and to the scale subresource of the
// workload.
type Calls struct {
	Metric   func() (float64, error) // GetMetrics
	Active   func() (bool, error)    // IsActive
	Replicas func() int              // spec.replicas
	Scale    func(replicas int)
}

// NewAutoscaler returns the autoscaler of an object, whose defaults are those of KEDA and of
// Kubernetes. An HPA never scales below one replica: KEDA itself scales to zero.
func NewAutoscaler(object scaledobject.Object) (*Autoscaler, error) {
	spec := kedaSpec(object)
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
	return &Autoscaler{keda: keda, hpa: hpa, interval: max(1, int(spec.PollingInterval))}, nil
}

// Tick polls the scaler and syncs the HPA if they are due in a second. Objects are polled one
// second after the other by their position among all.
func (a *Autoscaler) Tick(second, position int, c Calls) {
	if (second+position)%a.interval == 0 {
		a.poll(float64(second), c)
	}
	if second%int(simulation.HPASync) == int(simulation.HPASync)/2 {
		a.sync(float64(second), c)
	}
}

// Push applies KEDA's decision on a push.
func (a *Autoscaler) Push(second int, c Calls) {
	current := c.Replicas()
	if replicas, act := a.keda.Push(float64(second), current); act && replicas != current {
		c.Scale(replicas)
	}
}

// poll is one iteration of KEDA's scale loop.
func (a *Autoscaler) poll(now float64, c Calls) {
	_, err := c.Metric()
	active := false
	if err == nil {
		active, err = c.Active()
	}
	current := c.Replicas()
	if replicas, act := a.keda.Poll(now, current, active, err); act && replicas != current {
		c.Scale(replicas)
	}
}

// sync is one sync of the HPA. It gets the metric from KEDA's adapter, which calls the scaler.
func (a *Autoscaler) sync(now float64, c Calls) {
	current := c.Replicas()
	if current == 0 { // an HPA does not scale a workload at zero
		return
	}
	value, err := c.Metric()
	var replicas int
	if metric, known := a.keda.Metric(current, 1, value, err); known {
		replicas = a.hpa.Decide(now, current, metric)
	} else {
		replicas = a.hpa.DecideUnmeasured(now, current)
	}
	if replicas != current {
		c.Scale(replicas)
	}
}
