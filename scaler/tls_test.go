package scaler

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// authority signs certificates.
type authority struct {
	testing.TB
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a := &authority{TB: t, key: key}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.certificate, a.certificate, key.Public(), key)
	require.NoError(t, err)
	a.certificate, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// pair is a certificate and its key, in PEM.
type pair struct{ certificate, key []byte }

// issue signs a certificate that is good for both ends on 127.0.0.1, as it is changed.
func (a *authority) issue(change ...func(*x509.Certificate)) pair {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "keda"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, f := range change {
		f(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	require.NoError(a, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a, err)
	return pair{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}
}

// client returns the configuration of a client that trusts the authority for servers and presents
// the pair; a zero pair is no certificate.
func (a *authority) client(p pair) *tls.Config {
	a.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool(), NextProtos: []string{"h2"}, ServerName: "127.0.0.1"}
	config.RootCAs.AddCert(a.certificate)
	if p.certificate != nil {
		identity, err := tls.X509KeyPair(p.certificate, p.key)
		require.NoError(a, err)
		config.Certificates = []tls.Certificate{identity}
	}
	return config
}

// secured is a server whose port is secured by files.
type secured struct {
	testing.TB
	files   TLSFiles
	config  *tls.Config
	logs    *journal
	address string
}

// place writes a file as a mounted secret changes: the new one takes the place of the old in one
// step.
func place(t testing.TB, file string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(file+".new", data, 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

func (s *secured) identify(p pair) {
	s.Helper()
	place(s, s.files.Cert, p.certificate)
	place(s, s.files.Key, p.key)
}

// secure starts a server with the authority's certificate that takes the clients of the authority;
// change may alter the files' names, or the configuration that was made of them.
func secure(t testing.TB, a *authority, allowed ...string) *secured {
	t.Helper()
	dir := t.TempDir()
	s := &secured{TB: t, logs: &journal{}, files: TLSFiles{
		Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir, "ca.crt"), AllowedNames: allowed,
	}}
	s.identify(a.issue())
	place(t, s.files.ClientCA, a.pem)
	var err error
	s.config, err = NewTLSConfig(s.files, slog.New(s.logs))
	require.NoError(t, err)
	return s
}

func (s *secured) serve() *secured {
	s.Helper()
	board := NewBoard(BoardOptions{})
	board.Post(planAt(time.Now(), decided("a", 2)))
	server, err := NewServer(ServerOptions{Board: board, TLS: s.config, Logger: slog.New(s.logs)})
	require.NoError(s, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s, err)
	s.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(s.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	s.Cleanup(func() {
		cancel()
		require.NoError(s, <-served)
	})
	return s
}

// connect returns a connection that lasts as long as the test.
func (s *secured) connect(creds credentials.TransportCredentials) externalscaler.ExternalScalerClient {
	s.Helper()
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(creds))
	require.NoError(s, err)
	s.Cleanup(func() { conn.Close() })
	return externalscaler.NewExternalScalerClient(conn)
}

// ask asks for a metric over a connection of its own.
func (s *secured) ask(config *tls.Config) error {
	s.Helper()
	_, err := s.connect(credentials.NewTLS(config)).GetMetrics(s.Context(), metricsRequest("a"))
	return err
}

// shake makes a handshake and reads from the server, which begins with its settings: only then a
// client of TLS 1.3 knows whether it was let in.
func (s *secured) shake(config *tls.Config) (tls.ConnectionState, error) {
	s.Helper()
	raw, err := net.Dial("tcp", s.address)
	require.NoError(s, err)
	conn := tls.Client(raw, config)
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	return conn.ConnectionState(), err
}

func TestServerCertificateIsReloadedUnderARunningServer(t *testing.T) {
	older, newer := newAuthority(t, "older"), newAuthority(t, "newer")
	client := older.issue()
	s := secure(t, older).serve()
	lasting := s.connect(credentials.NewTLS(older.client(client)))
	_, err := lasting.GetMetrics(t.Context(), metricsRequest("a"))
	require.NoError(t, err)
	require.ErrorContains(t, s.ask(newer.client(client)), "certificate signed by unknown authority")

	s.identify(newer.issue())
	require.NoError(t, s.ask(newer.client(client)))
	require.ErrorContains(t, s.ask(older.client(client)), "certificate signed by unknown authority")
	_, err = lasting.GetMetrics(t.Context(), metricsRequest("a"))
	require.NoError(t, err, "an existing connection is not cut")
	require.Len(t, s.logs.lines(slog.LevelInfo), 1)
	require.Contains(t, s.logs.lines(slog.LevelInfo)[0], "TLS files reloaded")
}

func TestClientAuthorityIsRotatedUnderARunningServer(t *testing.T) {
	older, newer := newAuthority(t, "older"), newAuthority(t, "newer")
	s := secure(t, older).serve()
	ofOlder, ofNewer := older.client(older.issue()), older.client(newer.issue())
	require.NoError(t, s.ask(ofOlder))
	require.Equal(t, codes.Unavailable, status.Code(s.ask(ofNewer)))

	place(t, s.files.ClientCA, append(bytes.Clone(older.pem), newer.pem...))
	require.NoError(t, s.ask(ofOlder))
	require.NoError(t, s.ask(ofNewer))

	place(t, s.files.ClientCA, newer.pem)
	require.Equal(t, codes.Unavailable, status.Code(s.ask(ofOlder)))
	require.NoError(t, s.ask(ofNewer))
}

func TestClientIsRejected(t *testing.T) {
	own, other := newAuthority(t, "own"), newAuthority(t, "other")
	s := secure(t, own, "keda").serve()
	require.NoError(t, s.ask(own.client(own.issue())))
	for name, c := range map[string]struct {
		client *tls.Config
		want   string // the alert
	}{
		"without a certificate": {own.client(pair{}), "certificate required"},
		// Go's client shows none that was not asked for
		"of another authority":                        {own.client(other.issue()), "certificate required"},
		"of another authority that has the same name": {own.client(newAuthority(t, "own").issue()), "unknown certificate authority"},
		"with an expired certificate": {own.client(own.issue(func(c *x509.Certificate) {
			c.NotAfter = time.Now().Add(-time.Minute)
		})), "expired certificate"},
		"with a certificate for servers only": {own.client(own.issue(func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})), "bad certificate"},
		"with a name that is not allowed": {own.client(own.issue(func(c *x509.Certificate) { c.Subject.CommonName = "mallory" })), "bad certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.shake(c.client)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, codes.Unavailable, status.Code(s.ask(c.client)))
		})
	}
	t.Run("in plaintext", func(t *testing.T) {
		_, err := s.connect(insecure.NewCredentials()).GetMetrics(t.Context(), metricsRequest("a"))
		require.Equal(t, codes.Unavailable, status.Code(err))
	})
	t.Run("of TLS 1.1", func(t *testing.T) {
		client := own.client(own.issue())
		client.MinVersion, client.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		_, err := s.shake(client)
		require.ErrorContains(t, err, "protocol version not supported")
		client.MaxVersion = tls.VersionTLS12
		state, err := s.shake(client)
		require.NoError(t, err)
		require.EqualValues(t, tls.VersionTLS12, state.Version)
	})
}

func TestClientIsAllowedByAnyNameOfItsCertificate(t *testing.T) {
	own := newAuthority(t, "own")
	client := own.client(own.issue(func(c *x509.Certificate) {
		c.Subject.CommonName = "keda-operator"
		c.DNSNames = []string{"keda.example.org", "*.wild.example.org"}
		c.URIs = []*url.URL{{Scheme: "spiffe", Host: "cluster.local", Path: "/ns/keda/sa/keda-operator"}}
	}))
	for allowed, want := range map[string]bool{
		"keda-operator":    true,
		"keda.example.org": true,
		"spiffe://cluster.local/ns/keda/sa/keda-operator": true,
		"*.wild.example.org":                              true, // the name itself, not a pattern

		"KEDA-operator":        false,
		"keda":                 false,
		"example.org":          false,
		"a.wild.example.org":   false,
		"*":                    false,
		"127.0.0.1":            false,
		"own":                  false,
		"spiffe://cluster.loc": false,
	} {
		t.Run(allowed, func(t *testing.T) {
			s := secure(t, own, "nobody", allowed).serve()
			err := s.ask(client)
			rejected := s.logs.lines(slog.LevelWarn)
			if want {
				require.NoError(t, err)
				require.Empty(t, rejected)
				return
			}
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.NotEmpty(t, rejected)
			require.Contains(t, rejected[0], "none of its certificate's names is allowed peer=127.0.0.1:")
			require.Contains(t, rejected[0], "keda-operator")
		})
	}
}

func TestCertificateWithoutNamesMeetsNoAllowedName(t *testing.T) {
	own := newAuthority(t, "own")
	s := secure(t, own, "keda").serve()
	nameless := own.issue(func(c *x509.Certificate) { c.Subject = pkix.Name{Organization: []string{"keda"}} })
	require.Equal(t, codes.Unavailable, status.Code(s.ask(own.client(nameless))))
}

func TestClientThatResumesIsCheckedAgain(t *testing.T) {
	for name, version := range map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			older, newer := newAuthority(t, "older"), newAuthority(t, "newer")
			resuming := func(p pair) *tls.Config {
				config := older.client(p)
				config.MaxVersion, config.ClientSessionCache = version, tls.NewLRUClientSessionCache(1)
				return config
			}
			s := secure(t, older, "keda")
			// replicas may share the keys of their tickets, or restart with them
			shared := [32]byte{1}
			s.config.SetSessionTicketKeys([][32]byte{shared})
			s.serve()
			client := resuming(older.issue())
			for _, resumed := range []bool{false, true} {
				state, err := s.shake(client)
				require.NoError(t, err)
				require.Equal(t, resumed, state.DidResume)
			}

			stricter := secure(t, older, "another")
			stricter.config.SetSessionTicketKeys([][32]byte{shared})
			place(t, stricter.files.Cert, mustRead(t, s.files.Cert))
			place(t, stricter.files.Key, mustRead(t, s.files.Key))
			stricter.serve()
			state, err := stricter.shake(client)
			require.ErrorContains(t, err, "bad certificate")
			if version == tls.VersionTLS13 {
				require.True(t, state.DidResume)
			}

			client = resuming(older.issue())
			_, err = s.shake(client)
			require.NoError(t, err)
			place(t, s.files.ClientCA, newer.pem)
			state, err = s.shake(client)
			require.Error(t, err, "its authority is no more trusted")
			require.False(t, state.DidResume)
		})
	}
}

func mustRead(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return data
}

func TestInvalidFileKeepsTheOldOneAndIsLoggedOncePerChange(t *testing.T) {
	own := newAuthority(t, "own")
	fresh := own.issue()
	for name, c := range map[string]struct {
		file    func(TLSFiles) string
		content []byte // nil: the file is removed
		want    string
	}{
		"key of another certificate":  {func(f TLSFiles) string { return f.Key }, fresh.key, "private key does not match public key"},
		"certificate that is garbage": {func(f TLSFiles) string { return f.Cert }, []byte("garbage"), "failed to find any PEM data in certificate input"},
		"empty key":                   {func(f TLSFiles) string { return f.Key }, []byte{}, "failed to find any PEM data in key input"},
		"removed certificate":         {func(f TLSFiles) string { return f.Cert }, nil, "mount the secret"},
		"removed client CA":           {func(f TLSFiles) string { return f.ClientCA }, nil, "mount the secret"},
		"client CA that is garbage":   {func(f TLSFiles) string { return f.ClientCA }, []byte("garbage"), "0 of 0 certificates are whole"},
		"client CA that is cut off":   {func(f TLSFiles) string { return f.ClientCA }, append(bytes.Clone(own.pem), own.pem[:len(own.pem)/2]...), "1 of 2 certificates are whole"},
		"client CA that is no certificate": {func(f TLSFiles) string { return f.ClientCA },
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no")}), "certificate 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := secure(t, own).serve()
			client, file := own.client(own.issue()), c.file(s.files)
			sound := mustRead(t, file)
			require.NoError(t, s.ask(client))

			spoil := func() {
				if c.content == nil {
					require.NoError(t, os.Remove(file))
				} else {
					place(t, file, c.content)
				}
			}
			spoil()
			for range 3 {
				require.NoError(t, s.ask(client))
			}
			errs := s.logs.lines(slog.LevelError)
			require.Len(t, errs, 1)
			require.Contains(t, errs[0], "TLS files rejected, keeping the previous ones")
			require.Contains(t, errs[0], c.want)

			place(t, file, sound)
			require.NoError(t, s.ask(client))
			require.Len(t, s.logs.lines(slog.LevelInfo), 1)
			require.Len(t, s.logs.lines(slog.LevelError), 1)

			spoil()
			require.NoError(t, s.ask(client))
			require.Len(t, s.logs.lines(slog.LevelError), 2, "another change is another line")
		})
	}
}

// TestHalfOfARotationIsNotServed: the certificate comes before its key, as a tool writes them that
// has never heard of mounted secrets.
func TestHalfOfARotationIsNotServed(t *testing.T) {
	own := newAuthority(t, "own")
	s := secure(t, own).serve()
	client, fresh := own.client(own.issue()), own.issue(func(c *x509.Certificate) { c.SerialNumber = big.NewInt(77) })
	serial := func() int64 {
		state, err := s.shake(client)
		require.NoError(t, err)
		return state.PeerCertificates[0].SerialNumber.Int64()
	}
	place(t, s.files.Cert, fresh.certificate)
	require.EqualValues(t, 2, serial())
	place(t, s.files.Key, fresh.key)
	require.EqualValues(t, 77, serial())
}

func TestNewTLSConfigNamesAllValidationErrors(t *testing.T) {
	dir := t.TempDir()
	own := newAuthority(t, "own")
	one, two := own.issue(), own.issue()
	file := func(name string, data []byte) string {
		place(t, filepath.Join(dir, name), data)
		return filepath.Join(dir, name)
	}
	cert, key, otherKey := file("tls.crt", one.certificate), file("tls.key", one.key), file("other.key", two.key)
	absent := filepath.Join(dir, "absent")
	for name, c := range map[string]struct {
		give TLSFiles
		want []string
	}{
		"nothing":             {TLSFiles{}, []string{"name the file of the server's certificate", "name the file of the certificate's private key"}},
		"certificate, no key": {TLSFiles{Cert: cert}, []string{"name the file of the certificate's private key"}},
		"key, no certificate": {TLSFiles{Key: key}, []string{"name the file of the server's certificate"}},
		"key of another":      {TLSFiles{Cert: cert, Key: otherKey}, []string{"private key does not match public key", "use a certificate and the key that belongs to it"}},
		"files that are absent": {TLSFiles{Cert: absent + "1", Key: absent + "2", ClientCA: absent + "3"},
			[]string{"absent1: no such file", "absent2: no such file", "absent3: no such file", "mount the secret that holds it"}},
		"names without a CA": {TLSFiles{Cert: cert, Key: key, AllowedNames: []string{"keda"}}, []string{"name the client CA file too"}},
		"names that are none": {TLSFiles{Cert: cert, Key: key, ClientCA: file("ca", own.pem), AllowedNames: []string{"keda", "", " x"}},
			[]string{`allowed client name 2 is ""`, `allowed client name 3 is " x"`}},
		"all at once": {TLSFiles{Cert: absent, ClientCA: file("garbage", []byte("garbage")), AllowedNames: []string{""}},
			[]string{"private key", "use those of the clients' authorities", "allowed client name 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := NewTLSConfig(c.give, nil)
			require.Nil(t, config)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			require.NotContains(t, err.Error(), "BEGIN")
		})
	}
}

func TestTLSThatLetsAnybodyInIsLoggedLoudly(t *testing.T) {
	own := newAuthority(t, "own")
	s := secure(t, own)
	warnings := func(files TLSFiles) string {
		logs := &journal{}
		_, err := NewTLSConfig(files, slog.New(logs))
		require.NoError(t, err)
		return strings.Join(logs.lines(slog.LevelWarn), "\n")
	}
	require.Contains(t, warnings(s.files), "every holder of a certificate of the client CA gets an answer")
	require.Contains(t, warnings(TLSFiles{Cert: s.files.Cert, Key: s.files.Key}), "anybody who reaches the port gets an answer")
	named := s.files
	named.AllowedNames = []string{"keda"}
	require.Empty(t, warnings(named))
	s.identify(own.issue(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }))
	require.Contains(t, warnings(named), "has expired")
}

func TestServerWithoutClientCAAnswersAnybody(t *testing.T) {
	own := newAuthority(t, "own")
	s := secure(t, own)
	var err error
	s.config, err = NewTLSConfig(TLSFiles{Cert: s.files.Cert, Key: s.files.Key}, slog.New(s.logs))
	require.NoError(t, err)
	s.serve()
	require.NoError(t, s.ask(own.client(pair{})))
}

func TestTLSFilesAreZeroIfNothingIsNamed(t *testing.T) {
	require.True(t, TLSFiles{}.IsZero())
	for _, files := range []TLSFiles{{Cert: "x"}, {Key: "x"}, {ClientCA: "x"}, {AllowedNames: []string{"x"}}} {
		require.False(t, files.IsZero())
	}
}
