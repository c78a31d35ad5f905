package prometheus

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// scrapeConfig lets Prometheus find the engines by HTTP discovery; %s is their address.
const scrapeConfig = `global: {%sscrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
- job_name: engines
  http_sd_configs: [{url: "http://%s/targets", refresh_interval: 1s}]
`

// binary returns the Prometheus to start. If there is none, the test is skipped, or fails if
// E2E_REQUIRED is set.
func binary(t *testing.T) string {
	t.Helper()
	const remedy = "there is no Prometheus: install it (Debian: apt-get install prometheus) or name its binary in PROMETHEUS"
	if named := os.Getenv("PROMETHEUS"); named != "" {
		return named
	}
	found, err := exec.LookPath("prometheus")
	switch {
	case err == nil:
	case os.Getenv("E2E_REQUIRED") != "":
		t.Fatal(remedy)
	default:
		t.Skip(remedy)
	}
	return found
}

// scraper is a real Prometheus that scrapes engines. It keeps its data when it is killed and
// started again.
type scraper struct {
	testing.TB
	binary, directory string
	process           *process
	at                atomic.Pointer[url.URL]
}

func startScraper(t *testing.T, e *engines) *scraper {
	t.Helper()
	s := &scraper{TB: t, binary: binary(t), directory: t.TempDir()}
	require.NoError(t, os.WriteFile(s.path("prometheus.yml"), fmt.Appendf(nil, scrapeConfig, underscores(t, s.binary), address(e.URL)), 0o600))
	s.start()
	return s
}

func (s *scraper) path(name string) string { return filepath.Join(s.directory, name) }

// start returns once Prometheus answers queries. If another process took its port in the meantime,
// it ends, and is started on another one.
func (s *scraper) start() {
	s.Helper()
	const attempts = 5
	for range attempts {
		free := freeAddress(s)
		s.process = run(s, func(string) {}, s.binary, "--config.file="+s.path("prometheus.yml"), "--storage.tsdb.path="+s.path("data"),
			"--web.listen-address="+free, "--log.level=warn")
		eventually(s, "Prometheus is ready", func() bool { return s.process.hasEnded() || s.answers(free) })
		if !s.process.hasEnded() {
			s.at.Store(&url.URL{Scheme: "http", Host: free})
			return
		}
		if !strings.Contains(s.process.tail(), "address already in use") {
			break
		}
	}
	require.FailNow(s, "Prometheus does not start", s.process.tail())
}

// freeAddress returns an address that no process listens at now.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}

// answers reports whether this Prometheus, and not one of another test, is ready at an address.
func (s *scraper) answers(address string) bool {
	var flags struct{ Data map[string]string }
	return get("http://"+address+"/-/ready", nil) && get("http://"+address+"/api/v1/status/flags", &flags) &&
		flags.Data["storage.tsdb.path"] == s.path("data")
}

// get reports whether an address answers, and decodes its JSON if it is wanted.
func get(address string, into any) bool {
	answer, err := http.Get(address)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	return answer.StatusCode == http.StatusOK && (into == nil || json.NewDecoder(answer.Body).Decode(into) == nil)
}

// proxy is in front of Prometheus: it speaks TLS, and only answers requests with the token.
type proxy struct {
	testing.TB
	*httptest.Server
	caFile, tokenFile string
	stuck             atomic.Bool   // let every query wait until its caller ends it
	caught            chan struct{} // gets a value when a query waits
}

const rightToken = "correct-horse"

func newProxy(t *testing.T, s *scraper) *proxy {
	t.Helper()
	p := &proxy{TB: t, caught: make(chan struct{}, 1)}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(s.at.Load()) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+rightToken:
			http.Error(w, "unauthorized", http.StatusUnauthorized)
		case p.stuck.Load():
			_ = r.ParseForm() // the end of the connection is seen once the body is read
			select {
			case p.caught <- struct{}{}:
			default:
			}
			<-r.Context().Done()
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.Close)
	directory := t.TempDir()
	p.caFile, p.tokenFile = filepath.Join(directory, "ca.crt"), filepath.Join(directory, "token")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
	require.NoError(t, os.WriteFile(p.caFile, authority, 0o600))
	p.give(rightToken)
	return p
}

// give replaces the token of the server.
func (p *proxy) give(token string) {
	p.Helper()
	require.NoError(p, os.WriteFile(p.tokenFile+".new", []byte(token), 0o600))
	require.NoError(p, os.Rename(p.tokenFile+".new", p.tokenFile))
}
