package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInvalidCommandLinesAreRejectedBeforeTheBuild(t *testing.T) {
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{nil, "nothing to write; name --output, --archive, --push or --tree"},
		{[]string{"--tree", "t"}, "--tree is for one platform and there are 2"},
		{[]string{"--output", "o", "--platform", "windows/amd64"}, `platform "windows/amd64" is not supported`},
		{[]string{"--output", "o", "--platform", "linux/amd64,linux/amd64"}, "is there twice"},
		{[]string{"--output", "o", "--platform", ""}, "there is no platform"},
		{[]string{"--output", "o", "-o", "yaml"}, `format "yaml" is unknown`},
		{[]string{"--output", "o", "--version", "a b"}, `version "a b" cannot be the tag`},
		{[]string{"--output", "o", "--repository", "UPPER"}, "name a --repository"},
		{[]string{"--push", "a@sha256:b"}, "has a digest"},
		{[]string{"--push", "Not A Reference"}, "write registry/repository"},
		{[]string{"--unknown"}, "unknown flag: --unknown; see --help"},
		{[]string{"surplus"}, `unknown argument "surplus"`},
	} {
		command := newCommand()
		command.SetArgs(test.arguments)
		err := command.Execute()
		require.ErrorContains(t, err, test.want)
		usage := new(usageError)
		require.ErrorAs(t, err, &usage, "%v is an error of the command line", test.arguments)
	}
}

func TestAllErrorsOfTheCommandLineAreReportedAtOnce(t *testing.T) {
	_, err := options{format: "yaml", platforms: []string{"plan9/386"}}.check()
	for _, want := range []string{"nothing to write", "format", "platform"} {
		require.ErrorContains(t, err, want)
	}
}

func TestReportHasReferenceDigestAndSizes(t *testing.T) {
	r, err := newReport(fakeProduct(t), []destination{{"layout", "dist/image"}})
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, r.write(&text, "text"))
	for _, want := range []string{"ghcr.io/wva-project/wva:v1.2.3", r.Digest, "linux/amd64", "linux/arm64", "MB compressed", "dist/image"} {
		require.Contains(t, text.String(), want)
	}
	var encoded bytes.Buffer
	require.NoError(t, r.write(&encoded, "json"))
	require.Contains(t, encoded.String(), `"version": "v1.2.3"`)
	require.Contains(t, encoded.String(), `"compressedSize"`)
}
