package scaler

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// certificateBlock is the type of a certificate's block in PEM.
const certificateBlock = "CERTIFICATE"

// TLSFiles names the PEM files that secure a port, and the clients that it answers. The files are looked at in each
// handshake and read again where they changed; what is in force stays so until a whole and sound new one is there.
type TLSFiles struct {
	// Cert holds the server's certificate, followed by its intermediates. Required.
	Cert string
	// Key holds the private key of the certificate. Required.
	Key string
	// ClientCA holds the authorities of client certificates: during a rotation, the old and the new one. Default: no
	// client certificate is asked for, which is logged as a warning.
	ClientCA string
	// AllowedNames are the clients that get an answer. Each is a DNS name, a URI or the common name of a client's
	// certificate, compared byte for byte. Default: every certificate of ClientCA, which is logged as a warning.
	AllowedNames []string
}

// IsZero reports whether nothing is named: the port is meant to be plaintext.
func (f TLSFiles) IsZero() bool {
	return f.Cert == "" && f.Key == "" && f.ClientCA == "" && len(f.AllowedNames) == 0
}

// NewTLSConfig returns a configuration for ServerOptions.TLS: TLS 1.2 or later, and only for clients of ClientCA with an
// allowed name where these are set. The logger takes each change of a file and each client that is refused for its name;
// nil: nothing is logged. The error names every fault.
func NewTLSConfig(files TLSFiles, logger *slog.Logger) (*tls.Config, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	t := &serverTLS{names: slices.Clone(files.AllowedNames), logger: logger}
	faults := files.faults()
	var err error
	if files.Cert != "" && files.Key != "" {
		t.identity, err = newReloaded([]string{files.Cert, files.Key}, logger, readIdentity(files.Cert, files.Key, logger))
		faults = append(faults, err)
	}
	if files.ClientCA != "" {
		t.clientCA, err = newReloaded([]string{files.ClientCA}, logger, readAuthorities(files.ClientCA))
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("TLS of the server: %w", err)
	}
	t.warn()
	config := t.config("")
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		return t.config(hello.Conn.RemoteAddr().String()), nil
	}
	return config, nil
}

// faults returns what is wrong with the names, whatever the files hold.
func (f TLSFiles) faults() []error {
	var faults []error
	if f.Cert == "" {
		faults = append(faults, errors.New("the certificate file is missing; name the file of the server's certificate"))
	}
	if f.Key == "" {
		faults = append(faults, errors.New("the key file is missing; name the file of the certificate's private key"))
	}
	if f.ClientCA == "" && len(f.AllowedNames) > 0 {
		faults = append(faults, errors.New("client names are allowed, but no client certificate is asked for; name the client CA file too"))
	}
	for i, name := range f.AllowedNames {
		if strings.TrimSpace(name) != name || name == "" {
			faults = append(faults, fmt.Errorf("allowed client name %d is %q; remove it, or the spaces around it", i+1, name))
		}
	}
	return faults
}

// serverTLS is what the configuration of each handshake is made of.
type serverTLS struct {
	identity *reloaded[*tls.Certificate]
	clientCA *reloaded[*x509.CertPool] // nil: no client certificate is asked for
	names    []string                  // empty: every client of the authorities
	logger   *slog.Logger
}

func (t *serverTLS) warn() {
	switch {
	case t.clientCA == nil:
		t.logger.Warn("no client CA is set: anybody who reaches the port gets an answer")
	case len(t.names) == 0:
		t.logger.Warn("no client names are set: every holder of a certificate of the client CA gets an answer")
	}
}

// config returns the configuration of one handshake. Session tickets are of the configuration that the server was given,
// so that clients resume over a change of files; crypto/tls looks then whether the client's authority is still trusted.
func (t *serverTLS) config(peer string) *tls.Config {
	config := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return t.identity.latest(), nil },
	}
	if t.clientCA != nil {
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.ClientCAs = t.clientCA.latest()
		// Unlike VerifyPeerCertificate, this is also called where a session is resumed.
		config.VerifyConnection = func(state tls.ConnectionState) error { return t.verifyName(state, peer) }
	}
	return config
}

// verifyName refuses a client without an allowed name. Its certificate is verified.
func (t *serverTLS) verifyName(state tls.ConnectionState, peer string) error {
	if len(t.names) == 0 {
		return nil
	}
	if len(state.PeerCertificates) == 0 {
		return errors.New("the client shows no certificate")
	}
	held := namesOf(state.PeerCertificates[0])
	if slices.ContainsFunc(held, func(name string) bool { return slices.Contains(t.names, name) }) {
		return nil
	}
	t.logger.Warn("client refused: none of its certificate's names is allowed", "peer", peer, "names", held, "allowed", t.names)
	return fmt.Errorf("no name of the client's certificate %q is allowed; add one to the allowed client names", held)
}

func namesOf(certificate *x509.Certificate) []string {
	names := slices.Clone(certificate.DNSNames)
	for _, uri := range certificate.URIs {
		names = append(names, uri.String())
	}
	if certificate.Subject.CommonName != "" {
		names = append(names, certificate.Subject.CommonName)
	}
	return names
}

func readIdentity(certFile, keyFile string, logger *slog.Logger) func() (*tls.Certificate, error) {
	return func() (*tls.Certificate, error) {
		chain, chainErr := readTLSFile("certificate", certFile)
		key, keyErr := readTLSFile("key", keyFile)
		if err := errors.Join(chainErr, keyErr); err != nil {
			return nil, err
		}
		identity, err := tls.X509KeyPair(chain, key)
		if err != nil {
			return nil, fmt.Errorf("certificate %s with key %s: %w; put a certificate and the key that it was made for there, both in PEM", certFile, keyFile, err)
		}
		if ends := identity.Leaf.NotAfter; time.Now().After(ends) {
			logger.Warn("the server's certificate has expired: clients that verify it turn away; renew it", "file", certFile, "expired", ends)
		}
		return &identity, nil
	}
}

// readAuthorities is strict: x509's own reader skips what it cannot parse, and the clients of that authority would be
// refused while the file looks right.
func readAuthorities(file string) func() (*x509.CertPool, error) {
	return func() (*x509.CertPool, error) {
		data, err := readTLSFile("client CA", file)
		if err != nil {
			return nil, err
		}
		pool, count := x509.NewCertPool(), 0
		for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
			if block.Type != certificateBlock {
				continue
			}
			count++
			authority, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("client CA %s: certificate %d: %w; put whole certificates in PEM there", file, count, err)
			}
			pool.AddCert(authority)
		}
		if begun := bytes.Count(data, []byte("-----BEGIN "+certificateBlock)); count == 0 || count != begun {
			return nil, fmt.Errorf("client CA %s: %d certificates are whole, of %d; put those of the clients' authorities there, in PEM", file, count, begun)
		}
		return pool, nil
	}
}

func readTLSFile(what, file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; mount the secret that holds it, or correct the path", what, err)
	}
	return data, nil
}

// reloaded is a value that is read from files, and read again where they changed.
type reloaded[T any] struct {
	files  []string
	logger *slog.Logger
	read   func() (T, error)

	mu    sync.Mutex // guards what stands below
	value T          // the last sound one
	seen  []os.FileInfo
}

func newReloaded[T any](files []string, logger *slog.Logger, read func() (T, error)) (*reloaded[T], error) {
	r := &reloaded[T]{files: files, logger: logger, read: read, seen: lookAt(files)}
	var err error
	r.value, err = read()
	return r, err
}

// latest returns the value of the files as they are, or the last sound one. A faulty change is logged once.
func (r *reloaded[T]) latest() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := lookAt(r.files) // before they are read: what changes in between is seen by the next handshake
	if slices.EqualFunc(found, r.seen, unchanged) {
		return r.value
	}
	r.seen = found
	value, err := r.read()
	if err != nil {
		r.logger.Error("TLS files changed and cannot be used: those before stay in force", "files", r.files, "error", err)
		return r.value
	}
	r.logger.Info("TLS files reloaded", "files", r.files)
	r.value = value
	return value
}

// lookAt returns what there is to see of each file without reading it; nil where there is none.
func lookAt(files []string) []os.FileInfo {
	seen := make([]os.FileInfo, len(files))
	for i, file := range files {
		if info, err := os.Stat(file); err == nil {
			seen[i] = info
		}
	}
	return seen
}

func unchanged(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
