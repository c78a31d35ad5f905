package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/wva-project/wva/fleet"
)

// FleetSpec describes a fleet. Two fleets of the same spec give the same run, bit for bit.
type FleetSpec struct {
	// Seed is the randomness of start-up times and of iteration times. Each replica draws from a
	// stream of its own, named by its variant and number, so that other replicas do not change it.
	Seed uint64
	// Epoch is the time of day at which virtual time is 0.
	Epoch    time.Time
	Variants []VariantSpec
	// Nodes have the accelerators. A replica is scheduled to one node, and is pending until a node
	// has enough free GPUs. Accelerators of a type without nodes are unlimited.
	Nodes []NodeSpec
	// Models has a row for each model with a limit at its gateway.
	Models []ModelSpec
	// Routing is how gateways choose a replica. Zero means LeastRequests.
	Routing Routing
}

// Routing is how a gateway chooses among the replicas that are ready.
type Routing uint8

// The ways to route.
const (
	LeastRequests Routing = iota // the one with the fewest requests, in turn among equals
	RoundRobin                   // in turn
	// LeastKV selects the replica with the lowest KV cache usage, waiting prompts included, then
	// the one with the fewest requests, as endpoint pickers of the gateway API do. It splits load
	// over unequal accelerators by their memory.
	LeastKV
)

// ModelSpec limits the gateway queue of one model.
type ModelSpec struct {
	ID fleet.ModelID
	// MaxQueue is the largest number of requests in the gateway's queue; further ones are lost.
	// Zero means any number.
	MaxQueue int
	// Patience is how long after its arrival a request waits in the gateway's queue until it is
	// lost, in seconds. Zero means for ever.
	Patience float64
}

// VariantSpec describes a variant and its scale target.
type VariantSpec struct {
	ID         fleet.VariantID
	Model      fleet.ModelID
	Target     fleet.TargetID
	ServedName string // the model's name in metrics, one for all its variants. Empty: Model.Name

	Profile          Profile
	MaxSequences     int // max_num_seqs. Zero means 256
	MaxBatchedTokens int // max_num_batched_tokens, at least MaxSequences. Zero means 2048
	KVTokens         int // KV cache size. Zero means the profile's
	// PrefixHits is the share of each prompt that is found in the prefix cache, in [0, 1).
	PrefixHits float64

	GPUs        int               // of one replica. Zero means 1
	Accelerator fleet.Accelerator // their type. Empty: one that no node has
	Cost        float64           // of one replica for an hour

	// Startup is the mean time from scheduled to ready, in seconds. Zero means 60.
	Startup float64
	// StartupSpread is the standard deviation of the logarithm of the start-up time. Zero means
	// that all replicas need the mean.
	StartupSpread float64
	// Grace is how long a replica that is being removed may finish requests, in seconds. Zero means
	// 120.
	Grace   float64
	Initial int // replicas at the beginning; those that can be scheduled are ready
}

// withDefaults returns the spec with the stated defaults for fields that are zero.
func (v VariantSpec) withDefaults() VariantSpec {
	v.ServedName = cmp.Or(v.ServedName, v.Model.Name)
	v.MaxSequences = cmp.Or(v.MaxSequences, 256)
	v.MaxBatchedTokens = cmp.Or(v.MaxBatchedTokens, 2048)
	v.KVTokens = cmp.Or(v.KVTokens, v.Profile.KVTokens)
	v.GPUs = cmp.Or(v.GPUs, 1)
	v.Startup = cmp.Or(v.Startup, 60)
	v.Grace = cmp.Or(v.Grace, 120)
	return v
}

// resolved returns the spec with defaults, its variants, nodes and models sorted, or all its
// validation errors.
func (s FleetSpec) resolved() (FleetSpec, error) {
	var errs []error
	variants := make([]VariantSpec, len(s.Variants))
	for i, v := range s.Variants {
		variants[i] = v.withDefaults()
		if err := variants[i].validate(); err != nil {
			errs = append(errs, fmt.Errorf("variant %s: %w", v.ID, err))
		}
	}
	s.Variants = variants
	nodes, err := sortedNodes(s.Nodes)
	if err != nil {
		errs = append(errs, err)
	}
	s.Nodes = nodes
	s.Models = slices.Clone(s.Models)
	slices.SortFunc(s.Variants, func(a, b VariantSpec) int { return a.ID.Compare(b.ID) })
	slices.SortFunc(s.Models, func(a, b ModelSpec) int { return a.ID.Compare(b.ID) })
	if s.Routing > LeastKV {
		errs = append(errs, fmt.Errorf("routing %d is unknown; set LeastRequests, RoundRobin or LeastKV", s.Routing))
	}
	errs = append(errs, s.conflicts()...)
	errs = append(errs, s.modelErrors()...)
	return s, errors.Join(errs...)
}

func (v VariantSpec) validate() error {
	var errs []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	p := v.Profile
	require(p.Iteration > 0 && isFinite(p.Iteration), "an iteration takes %v s; give it a profile", p.Iteration)
	for _, share := range []float64{
		p.PerSequence, p.PerContextToken, p.PerPromptToken, p.PerPromptTokenSquared, p.PerRequest, p.Noise,
	} {
		require(share >= 0 && isFinite(share), "the profile has a coefficient of %v; all must be >= 0", share)
	}
	require(v.MaxSequences >= 1, "MaxSequences %d is below 1", v.MaxSequences)
	require(v.MaxBatchedTokens >= v.MaxSequences,
		"MaxBatchedTokens %d is below MaxSequences %d; raise it", v.MaxBatchedTokens, v.MaxSequences)
	require(v.KVTokens >= blockSize, "KVTokens %d is less than a block of %d", v.KVTokens, blockSize)
	require(v.PrefixHits >= 0 && v.PrefixHits < 1, "PrefixHits %v is not in [0, 1)", v.PrefixHits)
	require(v.GPUs >= 1, "GPUs %d is below 1", v.GPUs)
	require(v.Cost >= 0 && isFinite(v.Cost), "Cost %v is not a number >= 0", v.Cost)
	require(v.Startup > 0 && isFinite(v.Startup), "Startup %v is not a number > 0", v.Startup)
	require(v.StartupSpread >= 0 && isFinite(v.StartupSpread), "StartupSpread %v is not a number >= 0", v.StartupSpread)
	require(v.Grace > 0 && isFinite(v.Grace), "Grace %v is not a number > 0", v.Grace)
	require(v.Initial >= 0, "Initial %d is negative", v.Initial)
	return errors.Join(errs...)
}

// conflicts returns the contradictions between variants, which are sorted.
func (s FleetSpec) conflicts() []error {
	var errs []error
	owners := map[fleet.TargetID]fleet.VariantID{}
	names := map[fleet.ModelID]string{}
	for i, v := range s.Variants {
		if i > 0 && s.Variants[i-1].ID == v.ID {
			errs = append(errs, fmt.Errorf("variant %s is defined twice", v.ID))
		}
		if owner, owned := owners[v.Target]; owned {
			errs = append(errs, fmt.Errorf("variant %s: %s belongs to variant %s", v.ID, v.Target, owner))
		}
		owners[v.Target] = v.ID
		if name, named := names[v.Model]; named && name != v.ServedName {
			errs = append(errs, fmt.Errorf("variant %s: model %s is served as %q by another variant, not as %q", v.ID, v.Model, name, v.ServedName))
		}
		names[v.Model] = v.ServedName
	}
	return errs
}

func (s FleetSpec) modelErrors() []error {
	var errs []error
	for i, m := range s.Models {
		if i > 0 && s.Models[i-1].ID == m.ID {
			errs = append(errs, fmt.Errorf("model %s is defined twice", m.ID))
		}
		if m.MaxQueue < 0 {
			errs = append(errs, fmt.Errorf("model %s: MaxQueue %d is negative; 0 means any number", m.ID, m.MaxQueue))
		}
		if !(m.Patience >= 0) || !isFinite(m.Patience) {
			errs = append(errs, fmt.Errorf("model %s: Patience %v is not a number >= 0", m.ID, m.Patience))
		}
		if !slices.ContainsFunc(s.Variants, func(v VariantSpec) bool { return v.Model == m.ID }) {
			errs = append(errs, fmt.Errorf("model %s has no variant", m.ID))
		}
	}
	return errs
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
