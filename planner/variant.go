package planner

import (
	"cmp"
	"time"

	"github.com/wva-project/wva/fleet"
)

// variant is one variant with its workload and the metrics of its pods.
type variant struct {
	*fleet.Variant                   // the snapshot's row, or a copy of it
	target         fleet.TargetID    // Target, unversioned
	accelerator    fleet.Accelerator // Accelerator, or the last one that nodes showed
	price          float64           // Cost, or that of an older variant of the same replica type
	objective      fleet.Objective   // Objective, resolved in the same way
	workload       *fleet.Workload   // empty if it was not observed
	startup        time.Duration     // usual start-up time of a replica
	excluded       *fleet.Reason     // why it is not part of its model; nil if it is
	seen           bool              // the workload was observed
	fixed          *fixed            // the number that others set; nil if there is none
	engines        []*fleet.Usage    // metrics of ready replicas, without stuck ones
	stuckPods      []string          // names of the stuck ones
	silentPods     []string          // names of ready replicas that report nothing
	longSilent     []string          // and of those without metrics for silentFor
	// ordinals of overdue and stuck pods, sorted, if the highest ordinals go first
	lost     []int
	previous fleet.PreviousDecision
	profile  *fleet.Profile // profile of its engine; nil if there is none
	spec     int            // replicas of the workload's spec
	now      int            // the same, without those that are taken back
	podCounts
	nodeTime     time.Duration // that a node takes
	newestNode   time.Time     // when a pod last got a node; zero if that is not known
	pendingSince time.Time     // when the oldest overdue pod without a node was created
	fullBy       *variant      // another one whose Pending pods show that the type is full; or nil
	// accelerators that its replicas use; nil if they have no limit
	gpuType *gpuType
	// by ordinal: the nodes of the scheduled replicas that are capacity, as indices of gpuType's
	placements    [][]int32
	option        int     // of the solver's problems; none if the variant is not in them
	startBlocked  bool    // further replicas would not start either
	quota         *quota  // that admits the fewest replicas; nil if none limits them
	mostByQuota   int     // replicas that it admits
	mostPlaceable int     // most replicas that fit beside those of others
	bounds        []bound // of its replicas, in the order of the rules
	reports       reports
	reportingPods int // of a replica: of a group, several may report; 0 if none does
}

// knownAt returns the time of the variant's pods: earlier than now while they cannot be read. A pod
// that starts may have become ready since.
func (v *variant) knownAt(now time.Time) time.Time {
	if known := v.workload.KnownAt; !known.IsZero() && known.Before(now) {
		return known
	}
	return now
}

// profileOf returns the profile of a variant: the one of its trigger, else the first row that
// matches; nil if none does. A replica of several accelerators whose arguments do not say how it
// splits the model is assumed to split it over all of them.
func (x *view) profileOf(v *variant) *fleet.Profile {
	if v.Profile.Alpha > 0 {
		return &fleet.Profile{Cost: v.Profile}
	}
	precision, split := cmp.Or(v.Precision, v.workload.Precision), cmp.Or(v.workload.TensorParallel, v.GPUsPerReplica)
	profile, found := x.profiles.Find(fleet.ProfileKey{
		Namespace: v.ID.Namespace, Model: v.Model.Name, Accelerator: v.accelerator, Precision: precision, TensorParallel: split,
	})
	if !found {
		return nil
	}
	return new(profile)
}

// existing is the number of replicas of the spec within the variant's range.
func (v *variant) existing() int { return v.Range.Clamp(v.spec) }

// existingPods is the same without the Pending ones that are taken back.
func (v *variant) existingPods() int { return v.Range.Clamp(v.now) }

// mostAllowed is the most replicas that KEDA lets the variant have.
func (v *variant) mostAllowed() int {
	most := min(v.Range.Max, v.mostInQuota(), v.mostOnType())
	if v.Pause.Out {
		return min(most, v.now)
	}
	return most
}

// alive is the number of existing replicas that are capacity, or will be.
func (v *variant) alive() int { return max(0, v.now-v.overdue-v.useless()) }

// idleNumber returns the number at which KEDA considers the variant inactive.
func (v *variant) idleNumber() int {
	if v.Range.AllowsIdle {
		return v.Range.Idle
	}
	return 0
}

// shape returns the accelerators of one share of a replica, and its number of shares, one for each
// pod of a group. It returns 0 accelerators if the accelerator type or their number is unknown.
func (v *variant) shape() (gpus, shares int) {
	if v.accelerator == "" || v.GPUsPerReplica <= 0 {
		return 0, 1
	}
	total := min(v.GPUsPerReplica, mostGPUs)
	shares = max(1, min(v.workload.GroupSize, mostShares, total))
	return (total + shares - 1) / shares, shares
}

// takes returns the number of accelerators of one replica.
func (v *variant) takes() int {
	gpus, shares := v.shape()
	return gpus * shares
}

// Limits of one replica: of its accelerators, as of those of a node, so that sums do not overflow,
// and of the pods of a group, each of which is placed.
const (
	mostGPUs   = 1 << 16
	mostShares = 1 << 8
)
