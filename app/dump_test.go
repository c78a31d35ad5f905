//go:build unix

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
	"github.com/wva-project/wva/planner"
)

// requestDump requests a dump, and returns its log line.
func (s *started) requestDump(message string) map[string]any {
	s.log.Helper()
	s.dumps <- syscall.SIGUSR1
	return s.log.await(message)
}

// readDump returns the input in a file.
func readDump(t *testing.T, file string) planner.Input {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	in, err := planner.DecodeInput(data)
	require.NoError(t, err)
	return in
}

// wvactl builds the operators' tool.
func wvactl(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "wvactl")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/wvactl")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make test has compiled it
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	return binary
}

func TestWvactlDecidesADumpOfTheServerAsTheServerDid(t *testing.T) {
	tool := wvactl(t)
	w := newWorld(t)
	w.variant("chat", 2, "1")
	now := time.Now()
	w.load("chat-5f-0", now, 20, 2)
	w.load("chat-5f-1", now, 20, 2)
	// It has no modelID.
	w.write("invalid.yaml", strings.ReplaceAll(scaledObject, "NAME", "invalid"))
	file := filepath.Join(t.TempDir(), "snapshot.json")
	config := filepath.Join(t.TempDir(), "wva.yaml")
	require.NoError(t, os.WriteFile(config, nil, 0o600))
	s := w.start("--config", config, "--dump-snapshot", file)
	require.Equal(t, file, s.log.await("snapshot written")["file"])
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())

	compared := 0
	for _, policy := range []string{"", "scaleDown: {headroom: 0.9}", "saturation: {queueThreshold: 3}", "scaleDown: {headroom: 0.1}"} {
		if policy != "" {
			require.NoError(t, os.WriteFile(config, []byte(policy+"\n"), 0o600))
			s.log.await("configuration reloaded")
		}
		// A cycle may come between the dump and the comparison.
		for same := false; !same; {
			require.NoError(t, s.loop.Once(t.Context(), time.Now()))
			s.requestDump("snapshot written")
			plan, _ := s.board.Plan()
			if same = readDump(t, file).Snapshot.Time.Equal(plan.Time); same {
				served, err := fleet.EncodePlan(plan)
				require.NoError(t, err)
				decided, err := exec.CommandContext(t.Context(), tool, "plan", file, "-o", "json").Output()
				require.NoError(t, err)
				require.Equal(t, string(served), string(decided))
				require.Len(t, plan.Decisions, 2)
				compared++
			}
		}
	}
	require.Equal(t, 4, compared)
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
}

// scaledObject is one without a model; NAME is its name.
const scaledObject = `apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: NAME, namespace: llm}
spec:
  scaleTargetRef: {name: NAME}
  maxReplicaCount: 8
  triggers:
  - type: external-push
    metadata: {scalerAddress: "wva.keda.svc:9090", variantCost: "1", modelIDFromEnv: hunter2-environment}
  - type: kafka
    metadata: {sasl: hunter2-kafka}
`

func TestDumpIsWrittenToTheTemporaryDirectoryWithoutASetting(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("WVA_PROMETHEUS_BEARER_TOKEN", "hunter2-token")
	w := newWorld(t)
	w.write("invalid.yaml", strings.ReplaceAll(scaledObject, "NAME", "chat"))
	s := w.start()
	s.log.await("first plan posted")
	file, _ := s.requestDump("snapshot written")["file"].(string)
	require.Equal(t, os.TempDir(), filepath.Dir(file))
	in := readDump(t, file)
	require.Equal(t, "wva-snapshot-"+in.Snapshot.Time.UTC().Format("20060102T150405.000Z")+".json", filepath.Base(file))
	require.Len(t, in.Snapshot.Variants, 1)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotContains(t, string(data), "hunter2", "a secret is in the dump")
}

func TestDumpThatCannotBeWrittenIsLoggedWithTheRemedy(t *testing.T) {
	w := newWorld(t)
	w.variant("chat", 1, "1")
	file := filepath.Join(t.TempDir(), "none", "snapshot.json")
	s := w.start("--dump-snapshot", file)
	line := s.log.await("snapshot not written")
	require.Equal(t, "ERROR", line["level"])
	require.Contains(t, line["error"], "no such file or directory")
	require.Contains(t, line["remedy"], "set dumpSnapshot to a new or a regular file, in a directory")
	require.Equal(t, file, s.requestDump("snapshot not written")["file"], "the server goes on")
}

func TestDumpReplacesRegularFilesOnly(t *testing.T) {
	directory := t.TempDir()
	regular, link := filepath.Join(directory, "regular"), filepath.Join(directory, "link")
	require.NoError(t, os.WriteFile(regular, []byte("before"), 0o600))
	require.NoError(t, os.Symlink(regular, link))
	pipe := filepath.Join(directory, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for file, fileType := range map[string]string{link: "a symbolic link", directory: "a directory", os.DevNull: "a device", pipe: "not a regular file"} {
		require.EqualError(t, writeFile(file, []byte("after")), file+" is "+fileType+", which is not replaced; name a new or a regular file")
	}
	target, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, regular, target)
	for _, file := range []string{regular, filepath.Join(directory, "new")} {
		require.NoError(t, writeFile(file, []byte("after")))
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "after", string(data))
	}
}

func TestDumpThatIsRequestedBeforeTheServerRunsIsAnsweredLater(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	w := newWorld(t)
	w.variant("chat", 1, "1")
	log := newJournal(w)
	s, err := w.newServer(w.config(), log)
	require.NoError(t, err)
	w.dumps <- syscall.SIGUSR1
	w.run(s, log).log.await("snapshot ") // written, or not: nothing may be decided yet
}

// An operator who reads a dump knows the names from the configuration.
func TestPolicyOfADumpHasTheKeysOfTheSettings(t *testing.T) {
	c := newWorld(t).config("--sizing-queueing", "off", "--error-budget-enabled", "false")
	data, err := planner.EncodeInput(planner.Input{Policy: policyOf(c)})
	require.NoError(t, err)
	var dump struct{ Policy map[string]map[string]any }
	require.NoError(t, json.Unmarshal(data, &dump))
	var settings map[string]any
	require.NoError(t, json.Unmarshal([]byte(c.EffectiveJSON()), &settings))
	compared := 0
	for section, keys := range dump.Policy {
		for key, got := range keys {
			want := settings[section].(map[string]any)[key]
			if text, isText := got.(string); isText && text != "off" {
				duration, err := time.ParseDuration(text)
				require.NoError(t, err)
				configured, err := time.ParseDuration(fmt.Sprint(want))
				require.NoError(t, err, section+"."+key)
				got, want = duration, configured
			}
			require.Equal(t, want, got, section+"."+key)
			compared++
		}
	}
	require.Equal(t, 18, compared)
}

func TestDumpIsRejectedBeforeTheFirstDecision(t *testing.T) {
	var log strings.Builder
	file := filepath.Join(t.TempDir(), "snapshot.json")
	d := newDumper(func() string { return file }, nil, slog.New(slog.NewTextHandler(&log, nil)))
	d.dump(file)
	require.Contains(t, log.String(), `level=INFO msg="snapshot not written, nothing is decided yet"`)
	require.NoFileExists(t, file)
}

func TestDumpHasThePolicyOfTheDecision(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snapshot.json")
	d := newDumper(func() string { return file }, nil, slog.New(slog.DiscardHandler))
	for _, headroom := range []float64{0.3, 0.7} {
		d.plan(planner.Input{Snapshot: fleet.Snapshot{Time: time.Unix(int64(100*headroom), 0)}, Policy: planner.Policy{ScaleDownHeadroom: headroom}})
		if headroom == 0.3 {
			d.posted() // the other one never gets to the board
		}
	}
	d.dump(file)
	in := readDump(t, file)
	require.InDelta(t, 0.3, in.Policy.ScaleDownHeadroom, 0)
	require.Equal(t, int64(30), in.Snapshot.Time.Unix())
}

func TestDumpsEndWithTheirRequests(t *testing.T) {
	requests := make(chan os.Signal)
	close(requests)
	var log strings.Builder
	d := newDumper(func() string { return "" }, requests, slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, d.run(ctx))
	require.Empty(t, log.String())
}
