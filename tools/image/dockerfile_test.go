package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/stretchr/testify/require"
)

// lastStage returns the instructions of a Dockerfile's last stage.
func lastStage(t *testing.T, file string) []*parser.Node {
	t.Helper()
	opened, err := os.Open(file)
	require.NoError(t, err)
	defer opened.Close()
	parsed, err := parser.Parse(opened)
	require.NoError(t, err)
	lines := parsed.AST.Children
	for i, line := range slices.Backward(lines) {
		if strings.EqualFold(line.Value, "from") {
			return lines[i:]
		}
	}
	t.Fatalf("%s has no stage", file)
	return nil
}

// words returns the words after an instruction.
func words(line *parser.Node) []string {
	var all []string
	for node := line.Next; node != nil; node = node.Next {
		all = append(all, node.Value)
	}
	return all
}

func TestDockerfileMakesTheSameConfig(t *testing.T) {
	root, err := sourceAbove(".")
	require.NoError(t, err)
	want := imageConfig(v1.Platform{OS: "linux", Architecture: "amd64"},
		stamp{Version: "$VERSION", Revision: "$REVISION", Created: created}).Config
	want.Labels["org.opencontainers.image.created"] = "$CREATED"

	var got v1.Config
	var others []string
	for _, line := range lastStage(t, filepath.Join(root, "Dockerfile")) {
		arguments := words(line)
		switch strings.ToUpper(line.Value) {
		case "ENTRYPOINT":
			require.True(t, line.Attributes["json"], "a shell is not part of the image")
			got.Entrypoint = arguments
		case "USER":
			got.User = arguments[0]
		case "WORKDIR":
			got.WorkingDir = arguments[0]
		case "EXPOSE":
			got.ExposedPorts = map[string]struct{}{}
			for _, port := range arguments {
				got.ExposedPorts[port] = struct{}{}
			}
		case "LABEL":
			got.Labels = map[string]string{}
			for label := range slices.Chunk(arguments, 3) { // name, value, separator
				got.Labels[label[0]] = strings.Trim(label[1], `"`)
			}
		case "ARG":
		default:
			others = append(others, line.Original)
		}
	}
	require.Equal(t, encoded(t, want), encoded(t, got))
	require.Equal(t, []string{"FROM scratch", "COPY --from=build /tree /"}, others)
}

func encoded(t *testing.T, config v1.Config) string {
	t.Helper()
	text, err := json.MarshalIndent(config, "", "  ")
	require.NoError(t, err)
	return string(text)
}

func TestDockerIgnoreLeavesTheFilesOfTheBuild(t *testing.T) {
	root, err := sourceAbove(".")
	require.NoError(t, err)
	opened, err := os.Open(filepath.Join(root, ".dockerignore"))
	require.NoError(t, err)
	defer opened.Close()
	patterns, err := ignorefile.ReadAll(opened)
	require.NoError(t, err)
	ignore, err := patternmatcher.New(patterns)
	require.NoError(t, err)

	needed := []string{"go.mod", "go.sum", "tools/image/go.mod", "tools/image/go.sum"}
	needed = append(needed, filesOfBuild(t, root, "./cmd/wva")...)
	needed = append(needed, filesOfBuild(t, root, "-C=tools/image", ".")...)
	require.Greater(t, len(needed), 50)
	for _, file := range needed {
		ignored, err := ignore.MatchesOrParentMatches(file)
		require.NoError(t, err)
		require.False(t, ignored, "%s is needed to build", file)
	}
	ignored, err := ignore.MatchesOrParentMatches("cmd/wva/server_test.go")
	require.NoError(t, err)
	require.True(t, ignored, "tests are not needed")
}

// filesOfBuild returns the files below a directory that packages are built from.
func filesOfBuild(t *testing.T, root string, packages ...string) []string {
	t.Helper()
	list := []string{"list"}
	if at, in := strings.CutPrefix(packages[0], "-C="); in {
		list, packages = []string{"list", "-C", at}, packages[1:]
	}
	list = append(list, "-deps", "-f", `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`)
	command := exec.CommandContext(t.Context(), "go", append(list, packages...)...)
	command.Dir = root
	output, err := command.Output()
	require.NoError(t, err)
	var files []string
	for file := range strings.FieldsSeq(string(output)) {
		if below, err := filepath.Rel(root, file); err == nil && filepath.IsLocal(below) {
			files = append(files, filepath.ToSlash(below))
		}
	}
	return files
}
