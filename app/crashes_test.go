package app

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/fleet"
)

func TestCrashesAreCountedAndLogged(t *testing.T) {
	var log strings.Builder
	c := newCrashes(prometheus.NewRegistry())
	model := fleet.ModelID{Namespace: "llm", Name: "org/chat"}
	c.report(fleet.Plan{Crashes: []fleet.Crash{{Model: model, Panic: "index out of range", Stack: "goroutine 7"}}}, slog.New(slog.NewTextHandler(&log, nil)))
	require.InDelta(t, 1, testutil.ToFloat64(c.held), 0)
	require.Contains(t, log.String(), `level=ERROR msg="model crashed, held" namespace=llm model=org/chat panic="index out of range" stack="goroutine 7"`)
}
