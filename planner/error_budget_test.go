package planner

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/wva-project/wva/analyzer"
	"github.com/wva-project/wva/fleet"
)

// A window of an hour has twenty parts of three minutes.
const (
	partsOfWindow = 20
	partLength    = 3 * time.Minute
)

// corrected is the correction with the usual window and objective.
func corrected(parts []budgetPart) correction { return correct(parts, partsOfWindow, partLength, 0.95) }

// evenParts are two windows of parts with as many requests each, of which a share missed the
// objective.
func evenParts(requests, missed float64) []budgetPart {
	parts := make([]budgetPart, 2*partsOfWindow)
	for i := range parts {
		parts[i] = budgetPart{requests: requests, missed: missed * requests, isEvidence: true}
	}
	return parts
}

func TestHeadroomFollowsTheMissesOfTheBudget(t *testing.T) {
	for _, test := range []struct {
		name       string
		missed     float64
		percentile float64
		low, high  float64
	}{
		{"none missed", 0, 0.95, leastHeadroom, leastHeadroom},
		{"a tenth of those that may", 0.005, 0.95, leastHeadroom, leastHeadroom},
		{"half of those that may", 0.025, 0.95, 0.84, 0.87},
		{"as many as may", 0.05, 0.95, 0.999, 1.001},
		{"the same of a stricter objective", 0.05, 0.99, 1.3, 1.4},
		{"twice as many", 0.1, 0.95, 1.14, 1.16},
		{"all of them", 1, 0.95, mostHeadroom, mostHeadroom},
	} {
		t.Run(test.name, func(t *testing.T) {
			if c := correct(evenParts(100, test.missed), partsOfWindow, partLength, test.percentile); c.factor < test.low || c.factor > test.high || !c.known {
				t.Errorf("%+v, want a factor from %v to %v", c, test.low, test.high)
			}
		})
	}
}

func TestFewRequestsProveLittle(t *testing.T) {
	few := correct(evenParts(leastBudgetRequests/19.0, 0), partsOfWindow, partLength, 0.99)
	if many := correct(evenParts(1000, 0), partsOfWindow, partLength, 0.99); !(few.factor > 0.7 && few.factor < 1 && many.factor == leastHeadroom) {
		t.Errorf("none of %.0f missed: ×%v, none of %.0f: ×%v", few.window.requests, few.factor, many.window.requests, many.factor)
	}
	c := corrected(evenParts(leastBudgetRequests/21.0, 1))
	if c.factor != 1 || c.known || c.attainment() != (fleet.Reading{}) {
		t.Errorf("%.0f requests: %+v, want nothing corrected", c.window.requests, c)
	}
}

// While replicas start, requests that miss the objective have spent the budget: they raise a
// lowered headroom, but not above its neutral value, and they lower none.
func TestMissesOfStartsSpendTheBudget(t *testing.T) {
	withStarts := func(missed float64) []budgetPart {
		parts := evenParts(100, 0)
		for i := range parts {
			if i%4 == 0 {
				parts[i].isEvidence, parts[i].missed = false, missed*parts[i].requests
			}
		}
		return parts
	}
	for _, test := range []struct {
		name      string
		parts     []budgetPart
		low, high float64
	}{
		{"starts without misses", withStarts(0), leastHeadroom, leastHeadroom},
		{"half of the misses that may", withStarts(0.1), 0.84, 0.87},
		{"as many as may", withStarts(0.2), 0.999, 1},
		{"all requests of starts", withStarts(1), 1, 1},
	} {
		if c := corrected(test.parts); c.factor < test.low || c.factor > test.high || !c.known || c.window.missed > 0 {
			t.Errorf("%s: %+v, want a factor from %v to %v", test.name, c, test.low, test.high)
		}
	}
	parts := evenParts(100, 0.1)
	for i := range parts[:partsOfWindow] {
		parts[2*i].isEvidence, parts[2*i].missed = false, 0
	}
	if c := corrected(parts); math.Abs(c.factor-1.15) > 0.01 {
		t.Errorf("starts without misses: ×%v, want ×1.15", c.factor)
	}
	for i := range parts {
		parts[i].isEvidence = false
	}
	if c := corrected(parts); c != (correction{factor: 1}) {
		t.Errorf("no evidence at all: %+v", c)
	}
}

// bursts is a model that serves 100 requests in a part and 400 in those of a burst. In the starting
// ones a replica starts, and all requests miss the objective.
func bursts(isBurst, starts func(part int) bool) *scenario {
	return missing20().served(func(i int, p *fleet.LatencyPart) {
		missed := 0.0
		if isBurst(i) {
			p.Requests = 400
		}
		if starts(i) {
			p.Started, missed = 1, p.Requests
		}
		p.ITL = []fleet.Bucket{{Upper: 0.05, Count: p.Requests - missed}, {Count: missed}}
		p.TTFT = []fleet.Bucket{{Upper: 2, Count: p.Requests}, {}}
	})
}

// Misses of starts for requests that come for the first time within a window count for nothing.
func TestMissesOfAFirstRiseSpendNoBudget(t *testing.T) {
	const rise = servedParts - 14
	starts := func(i int) bool { return i >= rise && i < rise+3 }
	after := func(earlier int) float64 {
		return headroomOf(bursts(func(i int) bool { return i >= rise || i == earlier }, starts), Policy{})
	}
	for earlier, want := range map[int]float64{servedParts: leastHeadroom, rise - 30: leastHeadroom, rise - 12: 1} {
		if got := after(earlier); math.Abs(got-want) > 0.1 {
			t.Errorf("a burst in part %d, misses from %d on: headroom ×%v, want ×%v", earlier, rise, got, want)
		}
	}
}

// A first rise remains one, and a later burst none, when more of the past leaves the history: the
// headroom moves slowly.
func TestHeadroomMovesSlowlyAsBurstsLeaveTheHistory(t *testing.T) {
	most := math.Pow(1+budgetPerMinute, 2*partLength.Minutes()) * (1 + 1e-9)
	for _, between := range []int{12, 17, 25, 45} {
		before := 0.0
		for shift := range 2 * servedParts {
			isBurst := func(i int) bool { return (i+shift)%between < 3 }
			factor := headroomOf(bursts(isBurst, isBurst), Policy{})
			if ratio := factor / before; before > 0 && (ratio > most || ratio < 1/most) {
				t.Errorf("bursts each %d parts: ×%v became ×%v", between, before, factor)
			}
			before = factor
		}
	}
}

// A burst of misses while replicas start raises a lowered headroom slowly, with each part that is
// evidence; parts of starts alone move nothing, and neither does little evidence.
func TestMissesOfStartsRaiseTheHeadroomSlowly(t *testing.T) {
	start, evidence := budgetPart{requests: 1000, missed: 1000}, budgetPart{requests: 100, isEvidence: true}
	parts := append(evenParts(100, 0), start, start, start)
	for i := range 4 {
		want := leastHeadroom * math.Pow(1+budgetPerMinute, float64(i)*partLength.Minutes())
		if c := corrected(parts); math.Abs(c.factor-want) > 1e-9 {
			t.Errorf("%d parts of evidence after starts: ×%v, want ×%v", i, c.factor, want)
		}
		parts = append(parts, evidence)
	}
	with := corrected(slices.Concat(evenParts(100, 0), evenParts(100, 0.1)[:3]))
	without := corrected(slices.Concat(evenParts(100, 0), []budgetPart{{requests: 100}, {requests: 100}}, evenParts(100, 0.1)[:3]))
	if with.factor != without.factor {
		t.Errorf("×%v, and ×%v with starts without misses", with.factor, without.factor)
	}
	few := evenParts(leastBudgetRequests/21.0, 0)
	for i := range few {
		few[i].isEvidence = i%2 == 0
	}
	if c := corrected(append(few, start, few[0])); c.factor != 1 || c.known {
		t.Errorf("little evidence: %+v", c)
	}
}

// The factor begins neutral one window of evidence ago, and starts before that count.
func TestStartsAreNoPartOfTheWindowOfEvidence(t *testing.T) {
	mixed := func(missed float64) (parts []budgetPart) {
		for _, p := range evenParts(100, 0) {
			parts = append(parts, budgetPart{requests: 100, missed: missed}, p)
		}
		return parts
	}
	if c := corrected(mixed(0)); c.factor != leastHeadroom || c.window.requests != partsOfWindow*100 {
		t.Errorf("every second part is evidence: %+v, want ×%v of %d requests", c, leastHeadroom, partsOfWindow*100)
	}
	early := mixed(100)
	for i := 2 * partsOfWindow; i < len(early); i++ {
		early[i].missed = 0
	}
	first := early[:2*partsOfWindow+2]
	if c := corrected(slices.Concat(first, evenParts(100, 0)[:partsOfWindow-5])); c.factor < 0.8 {
		t.Errorf("starts that missed before the window of evidence: ×%v", c.factor)
	}
}

// Parts at the maximum are neither evidence nor do they count as spent.
func TestPartsAtTheMaximumCountForNothing(t *testing.T) {
	s := missing20().served(func(i int, p *fleet.LatencyPart) {
		p.ITL = []fleet.Bucket{{Upper: 0.05, Count: 100}, {}}
		if i%3 == 0 {
			p.Replicas, p.ITL = 1000, []fleet.Bucket{{Upper: 0.05}, {Count: 100}}
		}
	})
	if got := headroomOf(s, Policy{}); got != leastHeadroom {
		t.Errorf("headroom ×%v, want ×%v", got, leastHeadroom)
	}
}

// TestHeadroomMovesSlowly adds parts at random: neither a jump of the misses nor the parts that
// leave the window may change the factor by more than 2 % a minute.
func TestHeadroomMovesSlowly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 17))
	most := math.Pow(1+budgetPerMinute, 2*partLength.Minutes()) * (1 + 1e-9)
	var history []budgetPart
	before, lowest, highest := 1.0, 1.0, 1.0
	allowed := 0.0
	for i := range 5000 {
		if i%50 == 0 {
			allowed = math.Pow(10, -4*random.Float64())
		}
		// first all parts are evidence
		part := budgetPart{requests: 1000 * random.Float64() * random.Float64(), isEvidence: i < 2500 || random.IntN(4) > 0}
		part.missed = part.requests * allowed * random.Float64()
		history = append(history, part)
		after := corrected(history).factor
		if ratio := after / before; ratio > most || ratio < 1/most {
			t.Fatalf("×%v became ×%v in a part", before, after)
		}
		before, lowest, highest = after, min(lowest, after), max(highest, after)
		if i < 2*partsOfWindow || i >= 2500 {
			continue
		}
		if latest := corrected(history[len(history)-2*partsOfWindow:]).factor; latest != after {
			t.Fatalf("×%v by two windows, ×%v by all parts", latest, after)
		}
	}
	if lowest != leastHeadroom || highest < 1.3 || highest > mostHeadroom {
		t.Errorf("from ×%v to ×%v", lowest, highest)
	}
}

func TestHeadroomIsAPartOfTheRequiredCapacity(t *testing.T) {
	for factor, want := range map[float64]float64{1: 1, leastHeadroom: 0.9, mostHeadroom: 1 + 1.0/6} {
		z := &sizedModel{correction: correction{factor: factor}}
		if got := headroomFactor(z.correction.factor); math.Abs(got-want) > 1e-9 {
			t.Errorf("headroom ×%v: required capacity ×%v, want ×%v", factor, got, want)
		}
	}
}

// A lowered headroom counts for a scale-down as far as replicas start quickly, a raised one always.
func TestLoweredHeadroomCountsLessForSlowStarts(t *testing.T) {
	for _, test := range []struct {
		startup      time.Duration
		factor, want float64
	}{
		{0, 0.9, 0.9},
		{time.Minute, 0.9, 0.9},
		{2 * time.Minute, 0.9, 0.95},
		{10 * time.Minute, 0.9, 0.99},
		{2 * time.Minute, 1, 1},
		{2 * time.Minute, 1.1, 1.1},
	} {
		z := &sizedModel{candidates: []candidate{
			{variant: &variant{startup: test.startup, now: 1}, share: 1},
			{variant: &variant{startup: time.Hour, now: 1}},   // its capacity is not known
			{variant: &variant{startup: time.Hour}, share: 1}, // it has no replica
		}}
		if got := z.scaleDownFactor(test.factor); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%+v: %v", test, got)
		}
	}
	decide := func(rate float64, startup time.Duration) int {
		s := risingBy(0, rate, group{ready: 7}).load(func(l *fleet.Load) {
			for i := range l.Latencies.Parts {
				p := &l.Latencies.Parts[i]
				p.ITL = []fleet.Bucket{{Upper: 0.05, Count: p.Requests}, {}}
			}
		})
		s.Workloads[0].Startup = startup
		return s.decide(t)["cheap"].Replicas
	}
	if quick, slow := decide(47, 50*time.Second), decide(47, 2*time.Minute); quick != 6 || slow != 7 {
		t.Errorf("7 replicas become %d if they start in 50 s, want 6, and %d if in 2 min, want 7", quick, slow)
	}
}

// Demand above the mean counts less, but the mean keeps half of its headroom.
func TestShortPeaksCountLess(t *testing.T) {
	for name, test := range map[string]struct {
		factor, mean, highest, headroom float64
		startup                         time.Duration
		unknown                         bool
		steady, down                    float64 // required; the demand is 1
		spared                          bool
	}{
		"the mean itself":        {0.7, 1, 1, 0.05, 0, false, 0.9, 0.9, false},
		"a small peak":           {0.7, 0.95, 1, 0.05, 0, false, 0.855, 0.9, true},
		"a high peak":            {0.7, 0.8, 1, 0.05, 0, false, 0.8, 0.9, true},
		"a jump":                 {0.7, 0.08, 1, 0.05, 0, false, 0.89, 0.9, true},
		"below the mean":         {0.7, 1.2, 1.2, 0.05, 0, false, 0.9, 1.08, false},
		"above the highest":      {0.7, 3, 1.2, 0.05, 0, false, 0.9, 1.08, false},
		"a peak before":          {0.7, 1, 1.2, 0.05, 0, false, 0.9, 0.955, true},
		"a high peak before":     {0.7, 1, 2, 0.05, 0, false, 0.9, 1.675, true},
		"half of the factor":     {0.85, 0.8, 1, 0.05, 0, false, 0.9, 0.95, true},
		"no mean":                {0.7, 0.8, 1.2, 0.05, 0, true, 0.9, 1.08, false},
		"zero":                   {0.7, 0, 1.2, 0.05, 0, false, 0.9, 0.955, true},
		"slowly, about the mean": {0.7, 1, 1.05, 0.05, 2 * time.Minute, false, 0.9, 0.97375, true},
		"a small peak before":    {0.7, 1, 1.1, 0.05, 0, false, 0.9, 0.9225, true},
		"replicas start slowly":  {0.7, 1, 1.2, 0.05, 2 * time.Minute, false, 0.9, 1.0775, true},
		"more headroom":          {0.7, 1, 1.1, 0.1, 0, false, 0.9, 0.945, true},
	} {
		z := &sizedModel{correction: correction{factor: test.factor}, headroom: test.headroom}
		z.candidates = []candidate{{variant: &variant{now: 1, startup: test.startup}, share: 1}}
		z.demand = demand{steady: 1, latest: 1.5, highest: test.highest}
		z.applyCorrection(test.mean, !test.unknown)
		for amount, pair := range map[string][2]float64{
			"steady": {z.demand.steady, test.steady}, "latest": {z.demand.latest, test.steady + 0.5}, "highest": {z.demand.highest, test.down},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-9 {
				t.Errorf("%s: %s %v, want %v", name, amount, pair[0], pair[1])
			}
		}
		if z.sparesPeaks != test.spared {
			t.Errorf("%s: peaks count less: %v", name, z.sparesPeaks)
		}
	}
}

// TestShortPeaksNeedAMean leaves out one condition at a time.
func TestShortPeaksNeedAMean(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	limited := func(n int, by analyzer.Limit) candidate {
		return candidate{variant: &variant{Variant: &fleet.Variant{}, now: n}, share: 1, capacity: analyzer.Capacity{LimitedBy: by}}
	}
	part := func(ago time.Duration, requests float64) budgetPart {
		return budgetPart{end: now.Add(-ago), requests: requests}
	}
	shared := pool{Pool: analyzer.Pool{Alone: 0.6, Exponent: 0.5}, mean: 0.5}
	for name, test := range map[string]struct {
		change func(z *sizedModel)
		mean   float64 // zero: not known
	}{
		"all":                   {func(*sizedModel) {}, 0.5},
		"TTFT limits":           {func(z *sizedModel) { z.candidates[0].capacity.LimitedBy = analyzer.LimitTTFT }, 0.5},
		"throughput limits":     {func(z *sizedModel) { z.candidates[0].capacity.LimitedBy = analyzer.LimitThroughput }, 0},
		"throughput limits one": {func(z *sizedModel) { z.candidates = append(z.candidates, limited(1, analyzer.LimitThroughput)) }, 0},
		"one without replicas":  {func(z *sizedModel) { z.candidates = append(z.candidates, limited(0, analyzer.LimitThroughput)) }, 0.5},
		"no replicas":           {func(z *sizedModel) { z.candidates[0] = limited(0, analyzer.LimitITL) }, 0},
		"capacity not known":    {func(z *sizedModel) { z.candidates[0].share = 0 }, 0},
		"no budget left":        {func(z *sizedModel) { z.correction.factor = 1 }, 0},
		"a steady rise":         {func(z *sizedModel) { z.demand.rising.slope = 0.01 }, 0},
		"a silent replica":      {func(z *sizedModel) { z.demand.silent = 1 }, 0},
		"a queue":               {func(z *sizedModel) { z.demand.queued = 2 }, 0},
		"late now":              {func(z *sizedModel) { z.demand.itl = fleet.Observed(0.06) }, 0},
		"late before":           {func(z *sizedModel) { z.demand.parts[2].missed = 91 }, 0},
		"late, within budget":   {func(z *sizedModel) { z.demand.parts[2].missed = 90 }, 0.5},
		"the latest is higher":  {func(z *sizedModel) { z.demand.parts[2].requests = 2700 }, 0.75},
		"few requests": {func(z *sizedModel) {
			z.demand.parts = []budgetPart{part(4*time.Minute, 199), part(time.Minute, 199)}
		}, 0},
		"the one before is higher": {func(z *sizedModel) { z.demand.parts[1].requests = 2700 }, 0.75},
		"with headroom of a pool":  {func(z *sizedModel) { z.pool = shared }, shared.required(0.5)},
		"an infinite mean":         {func(z *sizedModel) { z.demand.rate = fleet.Observed(5e-324) }, 0},
		"one part":                 {func(z *sizedModel) { z.demand.parts = z.demand.parts[2:] }, 0},
		"no part":                  {func(z *sizedModel) { z.demand.parts = nil }, 0},
		"a gap":                    {func(z *sizedModel) { z.demand.parts[1].end = now.Add(-7 * time.Minute) }, 0},
		"long ago": {func(z *sizedModel) {
			z.demand.parts = []budgetPart{part(10*time.Minute, 1800), part(7*time.Minute, 1800)}
		}, 0},
		"a little before": {func(z *sizedModel) {
			z.demand.parts = []budgetPart{part(9*time.Minute, 1800), part(6*time.Minute, 1800)}
		}, 0.5},
		"long parts": {func(z *sizedModel) {
			z.demand.partLength = 72 * time.Minute
			z.demand.parts = []budgetPart{part(80*time.Minute, 43200), part(8*time.Minute, 43200)}
		}, 0},
	} {
		v := &variant{Variant: &fleet.Variant{}, now: 1, objective: fleet.Objective{ITL: 50 * time.Millisecond, Percentile: 0.95}}
		v.ready = 1
		z := &sizedModel{model: &model{variants: []*variant{v}}, correction: correction{factor: 0.7}}
		z.candidates = []candidate{{variant: v, share: 1, capacity: analyzer.Capacity{LimitedBy: analyzer.LimitITL}}}
		z.demand = demand{
			rate: fleet.Observed(20), partLength: 3 * time.Minute,
			parts: []budgetPart{part(7*time.Minute, 9000), part(4*time.Minute, 1800), part(time.Minute, 1800)},
		}
		test.change(z)
		mean, known := z.shortPeaksAbove(now)
		if known != (test.mean > 0) || known && math.Abs(mean-test.mean) > 1e-9 {
			t.Errorf("%s: %v, %v, want %v", name, mean, known, test.mean)
		}
	}
}
