package collector_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/collector"
)

// secret is a token that must be seen nowhere but in the header that it is for.
const secret = "s3cr3t-t0k3n"

// newTransport returns a transport that leaves no connection behind.
func newTransport(t *testing.T, options collector.TransportOptions) http.RoundTripper {
	t.Helper()
	transport, err := collector.NewTransport(options)
	require.NoError(t, err)
	t.Cleanup((&http.Client{Transport: transport}).CloseIdleConnections)
	return transport
}

// get reads an answer whole.
func get(t *testing.T, transport http.RoundTripper, address string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// getAtOnce reads several answers side by side and returns their errors.
func getAtOnce(t *testing.T, transport http.RoundTripper, address string, times int) error {
	t.Helper()
	errs := make([]error, times)
	var asking sync.WaitGroup
	for i := range errs {
		asking.Go(func() { _, errs[i] = get(t, transport, address) })
	}
	asking.Wait()
	return errors.Join(errs...)
}

// listen starts a server that says nothing of its own.
func listen(t *testing.T, answer http.HandlerFunc, change ...func(*httptest.Server)) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(answer)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, f := range change {
		f(server)
	}
	if server.TLS != nil {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server
}

// withTLS lets a server show a certificate, and ask for one of an authority if there is one.
func withTLS(identity tls.Certificate, clients *authority) func(*httptest.Server) {
	return func(server *httptest.Server) {
		server.TLS = &tls.Config{Certificates: []tls.Certificate{identity}}
		if clients != nil {
			server.TLS.ClientAuth, server.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
			server.TLS.ClientCAs.AddCert(clients.certificate)
		}
	}
}

// authority signs certificates.
type authority struct {
	testing.TB
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{TB: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	require.NoError(t, err)
	a.certificate, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// issue signs a certificate for prometheus.test that ends at the time, and returns it with its PEM
// and that of its key.
func (a *authority) issue(ends time.Time) (identity tls.Certificate, certificate, key []byte) {
	a.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{"prometheus.test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: ends,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, private.Public(), a.key)
	require.NoError(a, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(a, err)
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	identity, err = tls.X509KeyPair(certificate, key)
	require.NoError(a, err)
	return identity, certificate, key
}

// drawer is a folder of files.
type drawer struct {
	testing.TB
	dir string
}

func newDrawer(t testing.TB) drawer { return drawer{t, t.TempDir()} }

func (d drawer) put(name string, data []byte) string {
	d.Helper()
	file := filepath.Join(d.dir, name)
	require.NoError(d, os.WriteFile(file, data, 0o600))
	return file
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

func TestTransportTrustsAndIsTrustedByTheFilesAsTheyAreNow(t *testing.T) {
	files, servers, clients, later := newDrawer(t), newAuthority(t), newAuthority(t), newAuthority(t)
	identity, _, _ := servers.issue(time.Now().Add(time.Hour))
	server := listen(t, ok, withTLS(identity, clients))
	_, stranger, strangerKey := later.issue(time.Now().Add(time.Hour))
	_, friend, friendKey := clients.issue(time.Now().Add(time.Hour))
	transport := newTransport(t, collector.TransportOptions{
		CAFile:   files.put("ca", later.pem),
		CertFile: files.put("cert", stranger), KeyFile: files.put("key", strangerKey), ServerName: "prometheus.test",
	})
	_, err := get(t, transport, server.URL)
	require.ErrorContains(t, err, "set the CA file to the authority that signed Prometheus' certificate")

	files.put("ca", append(bytes.Clone(later.pem), servers.pem...))
	_, err = get(t, transport, server.URL)
	require.ErrorContains(t, err, "set a certificate and key of an authority that it trusts")

	files.put("cert", friend)
	files.put("key", friendKey)
	answer, err := get(t, transport, server.URL)
	require.NoError(t, err)
	require.Equal(t, "ok", answer)

	files.put("ca", []byte("garbage"))
	_, err = get(t, transport, server.URL)
	require.ErrorContains(t, err, "unable to use specified CA cert file")
	require.NoError(t, os.Remove(filepath.Join(files.dir, "ca")))
	_, err = get(t, transport, server.URL)
	require.ErrorContains(t, err, "unable to read CA cert")
	files.put("ca", servers.pem)
	_, err = get(t, transport, server.URL)
	require.NoError(t, err)
}

func TestTransportVerifiesPrometheus(t *testing.T) {
	files, own, other := newDrawer(t), newAuthority(t), newAuthority(t)
	ca := files.put("ca", own.pem)
	for name, c := range map[string]struct {
		of         *authority
		ends       time.Duration
		serverName string
		want       string // empty: it is trusted
	}{
		"good":                 {own, time.Hour, "prometheus.test", ""},
		"of another authority": {other, time.Hour, "prometheus.test", "set the CA file"},
		"for another name":     {own, time.Hour, "", "set the server name to one that Prometheus' certificate holds"},
		"expired":              {own, -time.Minute, "prometheus.test", "renew Prometheus' certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			identity, _, _ := c.of.issue(time.Now().Add(c.ends))
			server := listen(t, ok, withTLS(identity, nil))
			_, err := get(t, newTransport(t, collector.TransportOptions{CAFile: ca, ServerName: c.serverName}), server.URL)
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
	t.Run("TLS 1.1", func(t *testing.T) {
		identity, _, _ := own.issue(time.Now().Add(time.Hour))
		server := listen(t, ok, withTLS(identity, nil), func(s *httptest.Server) {
			s.TLS.MinVersion, s.TLS.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		})
		_, err := get(t, newTransport(t, collector.TransportOptions{CAFile: ca, ServerName: "prometheus.test"}), server.URL)
		require.ErrorContains(t, err, "protocol version")
	})
}

func TestTransportSendsTheTokenAsItIsNow(t *testing.T) {
	files := newDrawer(t)
	server := listen(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Authorization")) })
	answer, err := get(t, newTransport(t, collector.TransportOptions{BearerToken: secret}), server.URL)
	require.NoError(t, err)
	require.Equal(t, "Bearer "+secret, answer)

	fromFile := newTransport(t, collector.TransportOptions{BearerTokenFile: files.put("token", []byte("one\n"))})
	for _, token := range []string{"one", "two"} {
		files.put("token", []byte(token+"\n"))
		answer, err = get(t, fromFile, server.URL)
		require.NoError(t, err)
		require.Equal(t, "Bearer "+token, answer)
	}
	require.NoError(t, os.Remove(filepath.Join(files.dir, "token")))
	_, err = get(t, fromFile, server.URL)
	require.ErrorContains(t, err, "unable to read authorization credentials")
}

func TestTransportLeavesTheRequestOfItsCallerAlone(t *testing.T) {
	server := listen(t, ok)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	response, err := newTransport(t, collector.TransportOptions{BearerToken: secret}).RoundTrip(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Empty(t, request.Header, "a token in it would go wherever the caller sends it next")
}

func TestTokenIsInNoError(t *testing.T) {
	files := newDrawer(t)
	for name, options := range map[string]collector.TransportOptions{
		"with a line break inside":            {BearerToken: secret + "\n" + secret},
		"with a space before it":              {BearerToken: " " + secret},
		"with letters beyond ASCII":           {BearerToken: secret + "é"},
		"twice":                               {BearerToken: secret, BearerTokenFile: files.put("twice", []byte(secret))},
		"in a file, with a line break within": {BearerTokenFile: files.put("broken", []byte(secret+"\n"+secret))},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := collector.NewTransport(options)
			require.ErrorContains(t, err, "bearer token")
			require.NotContains(t, err.Error(), secret)
		})
	}
	t.Run("that is broken later", func(t *testing.T) {
		transport := newTransport(t, collector.TransportOptions{BearerTokenFile: files.put("later", []byte(secret))})
		files.put("later", []byte(secret+"\n"+secret))
		_, err := get(t, transport, listen(t, ok).URL)
		require.Error(t, err)
		require.NotContains(t, err.Error(), secret)
	})
}

func TestTransportFollowsNoRedirect(t *testing.T) {
	var reached atomic.Int64
	elsewhere := listen(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	for name, location := range map[string]string{
		"to another host": elsewhere.URL + "/login?state=" + secret,
		"to itself":       "/login?state=" + secret,
	} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			t.Run(name+" "+http.StatusText(code), func(t *testing.T) {
				var asked atomic.Int64
				server := listen(t, func(w http.ResponseWriter, _ *http.Request) {
					asked.Add(1)
					w.Header().Set("Location", location)
					w.WriteHeader(code)
				})
				_, err := get(t, newTransport(t, collector.TransportOptions{BearerToken: secret}), server.URL)
				require.ErrorContains(t, err, "/login is not followed")
				require.ErrorContains(t, err, "set the address of Prometheus to that of its API")
				require.NotContains(t, err.Error(), secret)
				require.EqualValues(t, 1, asked.Load())
			})
		}
	}
	require.Zero(t, reached.Load())
}

func TestTransportLimitsAnswers(t *testing.T) {
	const bound = 1 << 20
	options := collector.TransportOptions{MaxAnswer: bound}
	whole := strings.Repeat("a", bound)
	endless := func(w io.Writer) {
		for {
			if _, err := io.WriteString(w, whole); err != nil {
				return
			}
		}
	}
	t.Run("one that fits", func(t *testing.T) {
		transport := newTransport(t, options)
		server := listen(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, whole) })
		for range 3 * 2 { // its bytes are released
			answer, err := get(t, transport, server.URL)
			require.NoError(t, err)
			require.Len(t, answer, bound)
		}
	})
	for name, answer := range map[string]http.HandlerFunc{
		"announced": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "8589934592") },
		"endless":   func(w http.ResponseWriter, _ *http.Request) { endless(w) },
		"packed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			endless(gzip.NewWriter(w))
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := get(t, newTransport(t, options), listen(t, answer).URL)
			require.ErrorContains(t, err, "an answer is larger than 1048576 bytes")
			require.ErrorContains(t, err, "raise the limit")
		})
	}
	t.Run("an error", func(t *testing.T) {
		answer, err := get(t, newTransport(t, options), listen(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			endless(w)
		}).URL)
		require.NoError(t, err, "its beginning says enough")
		require.Len(t, answer, 64<<10)
	})
}

// TestTransportLimitsAnswersTogether holds three answers open at once, each within its own bound.
func TestTransportLimitsAnswersTogether(t *testing.T) {
	const bound = 1 << 20
	server := listen(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("a", bound)) })
	transport := newTransport(t, collector.TransportOptions{MaxAnswer: bound})
	open := func() *http.Response {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		require.NoError(t, err)
		response, err := transport.RoundTrip(request)
		require.NoError(t, err)
		return response
	}
	for range 2 { // the second time the bytes of the first are released, once
		first, second, third := open(), open(), open()
		for _, response := range []*http.Response{first, second} {
			_, err := io.Copy(io.Discard, response.Body)
			require.NoError(t, err)
		}
		_, err := io.Copy(io.Discard, third.Body)
		require.ErrorContains(t, err, "those read at once are larger than 2097152")
		for _, response := range []*http.Response{first, first, second, third} {
			require.NoError(t, response.Body.Close())
		}
	}
}

// counting counts the connections that a server is reached by.
func counting(opened *atomic.Int64) func(*httptest.Server) {
	return func(server *httptest.Server) {
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		}
	}
}

func TestTransportKeepsAsManyConnectionsAsACycleNeeds(t *testing.T) {
	var opened atomic.Int64
	var cycle sync.WaitGroup // of the requests that must be there before any is answered
	server := listen(t, func(w http.ResponseWriter, r *http.Request) {
		cycle.Done()
		cycle.Wait()
		ok(w, r)
	}, counting(&opened))
	transport := newTransport(t, collector.TransportOptions{})
	for range 3 {
		cycle.Add(mostQueries)
		require.NoError(t, getAtOnce(t, transport, server.URL, mostQueries))
	}
	require.EqualValues(t, mostQueries, opened.Load())
}

func TestTransportOpensNoFloodOfConnections(t *testing.T) {
	const most = 32
	var arrived atomic.Int64
	full, release := make(chan struct{}), make(chan struct{})
	server := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if arrived.Add(1) == most {
			close(full)
		}
		<-release
		ok(w, r)
	})
	transport := newTransport(t, collector.TransportOptions{})
	var held sync.WaitGroup
	var failed error
	held.Go(func() { failed = getAtOnce(t, transport, server.URL, most) })
	defer func() {
		close(release)
		held.Wait()
		require.NoError(t, failed)
	}()
	<-full
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	response, err := transport.RoundTrip(request)
	if err == nil {
		response.Body.Close()
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualValues(t, most, arrived.Load())
}

func TestTransportClosesIdleConnectionsOnDemand(t *testing.T) {
	var opened atomic.Int64
	server := listen(t, ok, counting(&opened))
	for _, options := range []collector.TransportOptions{{}, {BearerToken: secret}} {
		transport, before := newTransport(t, options), opened.Load()
		for range 2 {
			_, err := get(t, transport, server.URL)
			require.NoError(t, err)
			(&http.Client{Transport: transport}).CloseIdleConnections()
		}
		require.EqualValues(t, 2, opened.Load()-before)
	}
}

func TestTransportUsesAProxyOnlyWhenTold(t *testing.T) {
	proxy := listen(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "proxied") })
	server := listen(t, ok)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	// loopback, which Go never sends through a proxy, by another name
	direct := "http://0.0.0.0:" + address.Port()

	answer, err := get(t, newTransport(t, collector.TransportOptions{}), direct)
	require.NoError(t, err)
	require.Equal(t, "ok", answer)
	answer, err = get(t, newTransport(t, collector.TransportOptions{ProxyFromEnvironment: true}), direct)
	require.NoError(t, err)
	require.Equal(t, "proxied", answer)
}

func TestTransportOptionsReportEveryFault(t *testing.T) {
	files, own := newDrawer(t), newAuthority(t)
	_, certificate, _ := own.issue(time.Now().Add(time.Hour))
	_, _, otherKey := own.issue(time.Now().Add(time.Hour))
	absent := filepath.Join(files.dir, "absent")
	for name, c := range map[string]struct {
		give collector.TransportOptions
		want []string
	}{
		"certificate, no key": {collector.TransportOptions{CertFile: files.put("cert", certificate)}, []string{"set both files or neither"}},
		"key, no certificate": {collector.TransportOptions{KeyFile: files.put("key", otherKey)}, []string{"set both files or neither"}},
		"key of another": {collector.TransportOptions{CertFile: files.put("cert", certificate), KeyFile: files.put("key", otherKey)},
			[]string{"private key does not match public key", "the key that it was made for"}},
		"empty token": {collector.TransportOptions{BearerTokenFile: files.put("empty", []byte("\n"))}, []string{"is empty; write the token there"}},
		"all at once": {collector.TransportOptions{CAFile: files.put("garbage", []byte("garbage")), CertFile: absent + "1", KeyFile: absent + "2",
			BearerTokenFile: absent + "3", MaxAnswer: -1},
			[]string{"unable to use specified CA cert", "absent1", "absent3", "mount the secret that holds it", "set it above zero"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := collector.NewTransport(c.give)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			require.NotContains(t, err.Error(), "BEGIN")
		})
	}
}
