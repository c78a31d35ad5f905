package scaledobject

import (
	"strconv"

	"github.com/wva-project/wva/fleet"
)

// KEDA's annotations that pause or force scaling.
const (
	annotationPaused         = "autoscaling.keda.sh/paused"
	annotationPausedReplicas = "autoscaling.keda.sh/paused-replicas"
	annotationPausedIn       = "autoscaling.keda.sh/paused-scale-in"
	annotationPausedOut      = "autoscaling.keda.sh/paused-scale-out"
	annotationAwake          = "autoscaling.keda.sh/force-activation"
)

// readPause reads the annotations as KEDA 2.21 does (apis/keda/v1alpha1/scaledobject_types.go):
// paused-replicas pauses whatever its value is; the others apply unless their value is false.
func readPause(annotations map[string]string) fleet.Pause {
	p := fleet.Pause{
		All: isOn(annotations, annotationPaused), In: isOn(annotations, annotationPausedIn),
		Out: isOn(annotations, annotationPausedOut), Awake: isOn(annotations, annotationAwake),
	}
	text, found := annotations[annotationPausedReplicas]
	if !found {
		return p
	}
	p.All = true
	p.Replicas, p.Fixed = pausedReplicas(text)
	return p
}

// pausedReplicas returns the number at which KEDA pauses a target; false if KEDA stops with an
// error instead, which keeps the current replicas.
func pausedReplicas(text string) (int, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, false
	}
	return int(n), true
}

// isOn reports whether an annotation is set. As in KEDA, a value that is no boolean counts as true.
func isOn(annotations map[string]string, name string) bool {
	text, found := annotations[name]
	on, err := strconv.ParseBool(text)
	return found && (on || err != nil)
}

// renderPause is the inverse of readPause.
func renderPause(p fleet.Pause) map[string]string {
	if p == (fleet.Pause{}) {
		return nil
	}
	annotations := map[string]string{}
	for _, row := range []struct {
		name string
		on   bool
	}{{annotationPaused, p.All && !p.Fixed}, {annotationPausedIn, p.In}, {annotationPausedOut, p.Out}, {annotationAwake, p.Awake}} {
		if row.on {
			annotations[row.name] = "true"
		}
	}
	if p.Fixed {
		annotations[annotationPausedReplicas] = strconv.Itoa(p.Replicas)
	}
	return annotations
}
