package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An API server that has just started serves some resources, and answers 503 for others. A server
// that starts beside it decides nothing, and says for which resource it waits.
func TestServerBesideAHalfStartedAPIServerNamesTheResources(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pods") || r.URL.Query().Get("watch") != "" {
			http.Error(w, "the request has been made before all known HTTP paths have been installed, please try again", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}`)
	}))
	defer api.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: c,
		contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}], clusters: [{name: c, cluster: {server: "`+api.URL+`"}}]}`), 0o600))
	w := newWorld(t)
	s := w.start("--manifests", "", "--kubeconfig", kubeconfig)
	require.Eventually(t, func() bool {
		code, answer := s.get(t, "/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(answer, "nothing is decided yet") && strings.Contains(answer, "\nwatch of pods fails since ")
	}, time.Minute, 20*time.Millisecond)
}
