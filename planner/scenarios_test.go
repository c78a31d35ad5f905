package planner

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/wva-project/wva/fleet"
)

// TestScenarios decides every case of testdata/*.txt. With -update it writes the numbers and codes
// that differ. testdata/README.md describes the format.
func TestScenarios(t *testing.T) {
	for _, path := range scenarioFiles(t) {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			file, err := readScenarios(string(data))
			if err != nil {
				t.Fatalf("%s:%v", path, err)
			}
			for _, c := range file.cases {
				t.Run(c.title, func(t *testing.T) { c.check(t, path) })
			}
			if !*update {
				file.checkRules(t, path)
			} else if text := file.text(); text != string(data) {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func scenarioFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("testdata has no scenario: %v", err)
	}
	return paths
}

// scenarioSnapshots returns the snapshots of all cases by their titles.
func scenarioSnapshots(t *testing.T) map[string]fleet.Snapshot {
	t.Helper()
	snapshots := map[string]fleet.Snapshot{}
	for _, path := range scenarioFiles(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := readScenarios(string(data))
		if err != nil {
			t.Fatalf("%s:%v", path, err)
		}
		for _, c := range file.cases {
			if snapshots[filepath.Base(path)+": "+c.title], err = c.snapshot(); err != nil {
				t.Fatalf("%s:%v", path, err)
			}
		}
	}
	return snapshots
}

// checkRules checks that each rule that a file tests decides a variant of it.
func (f *scenarioFile) checkRules(t *testing.T, path string) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range f.cases {
		for _, row := range c.rows {
			seen[row.want["code"]] = true
		}
	}
	for _, code := range f.rules {
		if !seen[code] {
			t.Errorf("%s: no case expects the code %s of its rule", path, code)
		}
	}
	if len(f.cases) == 0 {
		t.Errorf("%s: it has no case", path)
	}
}

// check decides the case and compares each variant. With -update it corrects the expectation.
func (c *scenarioCase) check(t *testing.T, path string) {
	snapshot, err := c.snapshot()
	if err != nil {
		t.Fatalf("%s:%v", path, err)
	}
	plan := Plan(snapshot, c.policy)
	decisions := map[string]fleet.Decision{}
	for _, d := range plan.Decisions {
		if _, twice := decisions[d.Variant.Name]; twice {
			t.Fatalf("%s:%d: %s is decided twice", path, c.line, d.Variant)
		}
		decisions[d.Variant.Name] = d
	}
	for _, row := range c.rows {
		for _, one := range row.expanded() {
			d, found := decisions[one.cells["variant"]]
			if !found {
				t.Fatalf("%s:%d: %s is not decided", path, row.line, one.cells["variant"])
			}
			if *update {
				row.correct(d)
			} else if why := row.differs(d); why != "" {
				t.Errorf("%s:%d: %s: %s", path, row.line, d.Variant.Name, why)
				break // the others of the row differ alike
			}
		}
	}
	c.checkPlan(t, snapshot, plan)
}

// mostSolves is the most solver calls of one plan.
const mostSolves = 7

// checkPlan checks the properties that every plan has.
func (c *scenarioCase) checkPlan(t *testing.T, s fleet.Snapshot, plan fleet.Plan) {
	t.Helper()
	if plan.Solves > mostSolves {
		t.Errorf("%d solver calls, want at most %d", plan.Solves, mostSolves)
	}
	for _, d := range plan.Decisions {
		line := d.Reason.String()
		if d.Reason.Code == "" || line == "" {
			t.Errorf("%s has no reason: %+v", d.Variant, d)
		}
		if d.Known && d.Facts.CurrentKnown && d.Replicas < d.Facts.Current &&
			(strings.Contains(line, "scale-down blocked") || strings.Contains(line, "nothing shrinks")) {
			t.Errorf("%s goes from %d to %d replicas, and its reason contradicts that: %s", d.Variant, d.Facts.Current, d.Replicas, line)
		}
	}
	if again := Plan(shuffledRows(s), c.policy); !reflect.DeepEqual(again, plan) {
		t.Errorf("with its rows in another order the snapshot has the plan\n%+v\nwant\n%+v", again, plan)
	}
}

func shuffledRows(s fleet.Snapshot) fleet.Snapshot {
	random := rand.New(rand.NewPCG(3, 7))
	s.Models, s.Variants, s.Workloads = shuffledSlice(random, s.Models), shuffledSlice(random, s.Variants), shuffledSlice(random, s.Workloads)
	s.Usages, s.Loads, s.Pools = shuffledSlice(random, s.Usages), shuffledSlice(random, s.Loads), shuffledSlice(random, s.Pools)
	return s
}

func shuffledSlice[T any](random *rand.Rand, rows []T) []T {
	rows = append([]T(nil), rows...)
	random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}

// differs returns the difference of a decision to the expectation; empty if there is none.
func (r *scenarioRow) differs(d fleet.Decision) string {
	got := fmt.Sprintf("%d %s (%s)", d.Replicas, d.Reason.Code, d.Reason.String())
	if want := r.want["replicas"]; !d.Known || !numberIs(want, d.Replicas) {
		return fmt.Sprintf("%s; want %s replicas", got, want)
	}
	if want := r.want["code"]; want != "-" && want != string(d.Reason.Code) {
		return fmt.Sprintf("%s; want the code %s", got, want)
	}
	for fragment := range strings.SplitSeq(r.want["reason"], " & ") {
		absent := strings.HasPrefix(fragment, "!")
		fragment = strings.TrimPrefix(fragment, "!")
		if fragment != "" && strings.Contains(d.Reason.String(), fragment) == absent {
			return fmt.Sprintf("%s; want %q in the reason: %v", got, fragment, !absent)
		}
	}
	return ""
}

// correct writes the decision into the expectation, unless it is met already.
func (r *scenarioRow) correct(d fleet.Decision) {
	if !numberIs(r.want["replicas"], d.Replicas) {
		r.want["replicas"] = strconv.Itoa(d.Replicas)
	}
	if r.want["code"] != "-" {
		r.want["code"] = string(d.Reason.Code)
	}
}

// numberIs reports whether a number is as wanted: "3", ">=3", "<=3" or "2..4".
func numberIs(want string, n int) bool {
	number := func(text string) int {
		value, err := strconv.Atoi(text)
		if err != nil {
			return -1
		}
		return value
	}
	if least, found := strings.CutPrefix(want, ">="); found {
		return n >= number(least)
	}
	if most, found := strings.CutPrefix(want, "<="); found {
		return n <= number(most)
	}
	if from, to, found := strings.Cut(want, ".."); found {
		return n >= number(from) && n <= number(to)
	}
	return n == number(want)
}

func TestScenarioFilesAreCheckedWordByWord(t *testing.T) {
	const head = "rule Saturated\n\ncase a\n  It happens.\n\n"
	for text, want := range map[string]string{
		head + "variant | replicas code\na | 1 Unchanged\nb 2":                             "8: ",
		head + "variant speed | replicas code\na 2 | 1 Unchanged":                          "6: column speed",
		head + "variant ready | replicas code\na x | 1 Unchanged":                          "7: ready x",
		head + "variant ready | replicas code\na | 1 Unchanged":                            "7: 1 cells",
		head + "variant | replicas code\na | 1 Unchnged":                                   "7: code Unchnged",
		head + "variant is | replicas code\na idling | 1 Unchanged":                        "7: idling",
		head + "model m: gateway asleep\n":                                                 "6: gateway asleep",
		head + "pool H100: many nodes\n":                                                   "6: many nodes",
		head + "weather: rain\n":                                                           "6: weather",
		"rule Saturtaed\n":                                                                 "1: rule Saturtaed",
		head + "variant model | replicas code\na m | 1 x\nmodel n: idle":                   "7: code x",
		head + "pool H100: 1 nodes of 2\nvariant ready | replicas code\na 3 | 1 Unchanged": "8: 1 H100",
	} {
		file, err := readScenarios(text)
		if err == nil {
			_, err = file.cases[0].snapshot()
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}
