package scenarios

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/e2e/cluster/play"
)

// runMark is on the line above a shell block that is run as it is written.
const runMark = "<!-- run: quickstart -->"

// markedBlocks returns the shell blocks of a page that follow a mark.
func markedBlocks(t *testing.T, page string) []string {
	t.Helper()
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(content), runMark)
	var blocks []string
	for found {
		after, opened := strings.CutPrefix(strings.TrimLeft(rest, "\n"), "```sh\n")
		require.True(t, opened, "%s: no ```sh block follows %s: %.60q", page, runMark, rest)
		block, _, closed := strings.Cut(after, "\n```")
		require.True(t, closed, "%s: a block does not end: %.60q", page, after)
		blocks = append(blocks, block)
		_, rest, found = strings.Cut(after, runMark)
	}
	return blocks
}

func TestBlocksOfTheQuickstartRunAsWritten(t *testing.T) {
	blocks := markedBlocks(t, filepath.Join(play.Repository(), "docs", "quickstart.md"))
	require.NotEmpty(t, blocks)
	i := newInstallation(t)
	environment, err := i.Environment()
	require.NoError(t, err)
	for _, block := range blocks {
		command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", block)
		command.Dir, command.Env = play.Repository(), environment
		output, err := command.CombinedOutput()
		i.done(block)
		require.NoError(t, err, "%s\n%s", block, output)
		t.Logf("%s", output)
	}
}
