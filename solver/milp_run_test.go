package solver

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// milpAnswer is the answer of another solver to a program.
type milpAnswer struct {
	found     bool          // a plan
	proven    bool          // within the requested gap; without a plan: that there is none
	objective float64       // of the plan
	bound     float64       // lower bound on every plan; minus infinity if the solver has none
	took      time.Duration // processor time
}

// milpSolver is another solver, a program that is installed on this machine.
type milpSolver struct {
	name  string
	solve func(t testing.TB, g *milpProgram, effort milpEffort) milpAnswer
}

// milpEffort is the time limit of a solver, and the gap at which it may stop, as a share of the
// objective.
type milpEffort struct {
	limit time.Duration
	gap   float64
}

// milpSolvers are the installed ones, the faster one first.
func milpSolvers() []milpSolver {
	var found []milpSolver
	for _, s := range []milpSolver{{"cbc", solveByCBC}, {"glpsol", solveByGLPK}} {
		if _, err := exec.LookPath(s.name); err == nil {
			found = append(found, s)
		}
	}
	return found
}

func needSolvers(t testing.TB) []milpSolver {
	solvers := milpSolvers()
	if len(solvers) == 0 {
		t.Skip("neither cbc nor glpsol is installed (Debian: coinor-cbc, glpk-utils)")
	}
	return solvers
}

func writeProgram(t testing.TB, g *milpProgram) string {
	path := filepath.Join(t.TempDir(), "program.lp")
	if err := os.WriteFile(path, []byte(g.text()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func output(t testing.TB, name string, arguments ...string) (string, time.Duration) {
	command := exec.CommandContext(t.Context(), name, arguments...)
	text, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
	return string(text), command.ProcessState.UserTime() + command.ProcessState.SystemTime()
}

func solveByCBC(t testing.TB, g *milpProgram, effort milpEffort) milpAnswer {
	limit, gap := strconv.FormatFloat(effort.limit.Seconds(), 'f', -1, 64), milpNumber(effort.gap)
	text, took := output(t, "cbc", writeProgram(t, g), "timeMode", "cpu", "sec", limit, "ratioGap", gap, "solve")
	a := milpAnswer{took: took, bound: math.Inf(-1)}
	result := firstMatch(text, `(?m)^Result - (.*)$`)
	switch whole, ok := numberAfter(text, `(?m)^Optimal - objective value +(\S+)$`); {
	case ok && result == "": // no variable has to be whole
		return milpAnswer{found: true, proven: true, objective: whole, bound: whole, took: took}
	case strings.Contains(text, "infeasible") && !strings.Contains(text, "Objective value:"):
		a.proven = true
		return a
	case strings.HasPrefix(result, "Optimal solution found"):
		a.proven = true
	case !strings.HasPrefix(result, "Stopped on time limit"):
		t.Fatalf("cbc ended otherwise:\n%s", text)
	}
	if a.objective, a.found = numberAfter(text, `(?m)^Objective value: +(\S+)$`); !a.found && a.proven {
		t.Fatalf("cbc names no objective:\n%s", text)
	}
	if bound, ok := numberAfter(text, `(?m)^Lower bound: +(\S+)$`); ok {
		a.bound = bound
	} else if a.proven {
		a.bound = a.objective
	}
	return a
}

func solveByGLPK(t testing.TB, g *milpProgram, effort milpEffort) milpAnswer {
	path := writeProgram(t, g)
	report := path + ".out"
	limit := strconv.Itoa(max(1, int(effort.limit.Seconds())))
	text, took := output(t, "glpsol", "--lp", path, "--tmlim", limit, "--mipgap", milpNumber(effort.gap), "-o", report)
	a := milpAnswer{took: took, bound: math.Inf(-1)}
	if strings.Contains(text, "HAS NO PRIMAL FEASIBLE SOLUTION") || strings.Contains(text, "HAS NO INTEGER FEASIBLE SOLUTION") {
		a.proven = true
		return a
	}
	written, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	status := firstMatch(string(written), `(?m)^Status: +(.*)$`)
	a.proven = status == "INTEGER OPTIMAL" || status == "OPTIMAL"
	a.found = a.proven || status == "INTEGER NON-OPTIMAL"
	if a.found {
		a.objective, _ = numberAfter(string(written), `(?m)^Objective: +obj = (\S+) `)
	}
	if bounds := regexp.MustCompile(`(?m)^\+.*>= +(\S+) `).FindAllStringSubmatch(text, -1); len(bounds) > 0 {
		if bound, err := strconv.ParseFloat(bounds[len(bounds)-1][1], 64); err == nil {
			a.bound = bound
		}
	}
	if a.proven { // otherwise it stopped, maybe at the gap
		a.bound = a.objective
	}
	a.proven = a.proven || a.found && a.objective-a.bound <= effort.gap*math.Abs(a.objective)
	return a
}

func firstMatch(text, pattern string) string {
	if found := regexp.MustCompile(pattern).FindStringSubmatch(text); found != nil {
		return strings.TrimSpace(found[1])
	}
	return ""
}

func numberAfter(text, pattern string) (float64, bool) {
	x, err := strconv.ParseFloat(firstMatch(text, pattern), 64)
	return x, err == nil
}

func (a milpAnswer) String() string {
	switch {
	case a.proven && !a.found:
		return "there is no plan"
	case !a.found:
		return fmt.Sprintf("no plan found in %v", a.took.Round(time.Millisecond))
	}
	return fmt.Sprintf("%v (bound %v, proven %v) in %v", a.objective, a.bound, a.proven, a.took.Round(time.Millisecond))
}
