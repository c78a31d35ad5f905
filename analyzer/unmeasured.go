package analyzer

import (
	"fmt"

	"github.com/wva-project/wva/analyzer/queueing"
	"github.com/wva-project/wva/fleet"
)

// unmeasured says of which lengths of a role only the mean is measured: no engine exports their
// histogram.
type unmeasured struct {
	role             fleet.Role
	prompts, outputs bool
}

func (m Model) unmeasured(role fleet.Role) unmeasured {
	return unmeasured{role, requestsOf(m.Prompts) == 0, requestsOf(m.Outputs) == 0 && role != fleet.RolePrefill}
}

func (u unmeasured) any() bool { return u.prompts || u.outputs }

// mixKey has the parameters of the mix of a model: the role of a variant, and the longest length of
// those that are not measured.
type mixKey struct {
	role    fleet.Role
	longest float64
}

// knownMix is the mix of a model, or why there is none.
type knownMix struct {
	mix *queueing.Mix
	why string
}

// of returns the key of the mix for a replica. No request is longer than its KV cache.
func (u unmeasured) of(r queueing.Replica) mixKey {
	key := mixKey{role: u.role}
	if u.any() && r.KVTokens > 0 {
		key.longest = steps(r.KVTokens, coarseMean)
	}
	return key
}

// String returns the assumption and the remedy; "" if all lengths are measured.
func (u unmeasured) String() string {
	if !u.any() {
		return ""
	}
	names, metrics := "prompt lengths", "vllm:request_prompt_tokens_bucket"
	switch {
	case u.prompts && u.outputs:
		names, metrics = "prompt and output lengths", metrics+" and vllm:request_generation_tokens_bucket"
	case u.outputs:
		names, metrics = "output lengths", "vllm:request_generation_tokens_bucket"
	}
	return fmt.Sprintf("%s assumed from their mean, some far longer: no histogram; let Prometheus scrape one, such as %s", names, metrics)
}

// assume completes the answer of the queueing model for lengths of which only the mean is measured.
// If the objective cannot be met because a few of the assumed lengths are too long, that is not
// known of the real ones: the replica counts with the least rate that would be useful, as long as
// the objective can be met with lengths that all are their mean.
func (l latency) assume(u unmeasured, q queueing.Question, m Model, o Options) latency {
	if !l.known || !u.any() {
		return l
	}
	l.lengths = u.String()
	if !l.infeasible {
		return l
	}
	q.Mix, _ = m.knownMix(mixKey{u.role, equalLengths}, o)
	equal, err := o.Memo.maxRate(q, o.Memo.answersTo(q), nil)
	if err != nil || equal.Remedy != "" {
		return l
	}
	l.infeasible, l.remedy, l.empty = false, "", 0
	if l.rate < l.useful {
		l.rate, l.mean, l.pool, l.misses, l.doubtful = l.useful, l.useful, Pool{}, nil, false
		l.note = joined(l.note, "the least useful rate, as the longest of the assumed lengths miss the objective at any load")
	}
	return l
}

// equalLengths is the longest length if all that are not measured are their mean.
const equalLengths = 1
