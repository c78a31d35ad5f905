package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/app"
)

func TestVersionIsThatOfTheRelease(t *testing.T) {
	require.Regexp(t, `^wvactl \S.*, go1\.\d+.*, \w+/\w+\n$`, execute(t, "", "version").out)
	version = "v1.2.3"
	defer func() { version = "" }()
	require.Regexp(t, `^wvactl v1\.2\.3, `, execute(t, "", "version").out)
	var build app.Build
	require.NoError(t, json.Unmarshal([]byte(execute(t, "", "version", "-o", "json").out), &build))
	require.Equal(t, app.BuildOf("v1.2.3"), build)
	require.Equal(t, output{errs: "wvactl: output \"xml\" is unknown; it is text or json\n", code: exitUsage}, execute(t, "", "version", "-o", "xml"))
}
