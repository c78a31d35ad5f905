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

// TLSFiles names the PEM files that secure a port, and the clients that it answers. Each handshake
// checks whether the files changed, and reads changed files again; the previous contents are used
// until the new ones are complete and valid.
type TLSFiles struct {
	// Cert holds the server's certificate, followed by its intermediates. Required.
	Cert string
	// Key holds the private key of the certificate. Required.
	Key string
	// ClientCA holds the authorities of client certificates: during a rotation, the old and the new
	// one. Default: no client certificate is requested, which is logged as a warning.
	ClientCA string
	// AllowedNames are the clients that get an answer. Each is a DNS name, a URI or the common name
	// of a client's certificate, compared byte for byte. Default: every certificate of ClientCA,
	// which is logged as a warning.
	AllowedNames []string
}

// IsZero reports whether no file and no client is named: the port is plaintext.
func (f TLSFiles) IsZero() bool {
	return f.Cert == "" && f.Key == "" && f.ClientCA == "" && len(f.AllowedNames) == 0
}

// NewTLSConfig returns a configuration for ServerOptions.TLS: TLS 1.2 or later, and only for
// clients of ClientCA with an allowed name if these are set. The logger takes each change of a file
// and each client that is rejected for its name; nil: nothing is logged. The error names all
// validation errors.
func NewTLSConfig(files TLSFiles, logger *slog.Logger) (*tls.Config, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	t := &serverTLS{names: slices.Clone(files.AllowedNames), logger: logger}
	errs := files.validate()
	var err error
	if files.Cert != "" && files.Key != "" {
		t.identity, err = newReloaded([]string{files.Cert, files.Key}, logger, readIdentity(files.Cert, files.Key, logger))
		errs = append(errs, err)
	}
	if files.ClientCA != "" {
		t.clientCA, err = newReloaded([]string{files.ClientCA}, logger, readAuthorities(files.ClientCA))
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("TLS of the server: %w", err)
	}
	t.warn()
	config := t.config("")
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		return t.config(hello.Conn.RemoteAddr().String()), nil
	}
	return config, nil
}

// validate returns the validation errors of the names, whatever the files hold.
func (f TLSFiles) validate() []error {
	var errs []error
	if f.Cert == "" {
		errs = append(errs, errors.New("the certificate file is missing; name the file of the server's certificate"))
	}
	if f.Key == "" {
		errs = append(errs, errors.New("the key file is missing; name the file of the certificate's private key"))
	}
	if f.ClientCA == "" && len(f.AllowedNames) > 0 {
		errs = append(errs, errors.New("client names are allowed, but no client certificate is requested; name the client CA file too"))
	}
	for i, name := range f.AllowedNames {
		if strings.TrimSpace(name) != name || name == "" {
			errs = append(errs, fmt.Errorf("allowed client name %d is %q; remove it, or the spaces around it", i+1, name))
		}
	}
	return errs
}

// serverTLS makes the configuration of each handshake.
type serverTLS struct {
	identity *reloaded[*tls.Certificate]
	clientCA *reloaded[*x509.CertPool] // nil: no client certificate is requested
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

// config returns the configuration of one handshake. Session tickets belong to the configuration
// that the server has, so that clients resume after a change of files; crypto/tls then checks
// whether the client's authority is still trusted.
func (t *serverTLS) config(peer string) *tls.Config {
	config := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return t.identity.latest(), nil },
	}
	if t.clientCA != nil {
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.ClientCAs = t.clientCA.latest()
		// Unlike VerifyPeerCertificate, this is also called if a session is resumed.
		config.VerifyConnection = func(state tls.ConnectionState) error { return t.verifyName(state, peer) }
	}
	return config
}

// verifyName rejects a client without an allowed name. Its certificate is verified already.
func (t *serverTLS) verifyName(state tls.ConnectionState, peer string) error {
	if len(t.names) == 0 {
		return nil
	}
	if len(state.PeerCertificates) == 0 {
		return errors.New("the client shows no certificate")
	}
	names := namesOf(state.PeerCertificates[0])
	if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(t.names, name) }) {
		return nil
	}
	t.logger.Warn("client rejected: none of its certificate's names is allowed", "peer", peer, "names", names, "allowed", t.names)
	return fmt.Errorf("no name of the client's certificate %q is allowed; add one to the allowed client names", names)
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
			return nil, fmt.Errorf("certificate %s with key %s: %w; use a certificate and the key that belongs to it, both in PEM", certFile, keyFile, err)
		}
		if ends := identity.Leaf.NotAfter; time.Now().After(ends) {
			logger.Warn("the server's certificate has expired, so clients that verify it fail; renew it", "file", certFile, "expired", ends)
		}
		return &identity, nil
	}
}

// readAuthorities is strict: x509's own reader skips a block that it cannot parse, and the clients
// of that authority would be rejected although the file looks right.
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
				return nil, fmt.Errorf("client CA %s: certificate %d: %w; use whole certificates in PEM", file, count, err)
			}
			pool.AddCert(authority)
		}
		if begun := bytes.Count(data, []byte("-----BEGIN "+certificateBlock)); count == 0 || count != begun {
			return nil, fmt.Errorf("client CA %s: %d of %d certificates are whole; use those of the clients' authorities, in PEM", file, count, begun)
		}
		return pool, nil
	}
}

func readTLSFile(content, file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; mount the secret that holds it, or correct the path", content, err)
	}
	return data, nil
}

// reloaded is a value that is read from files, and read again if they changed.
type reloaded[T any] struct {
	paths  []string
	logger *slog.Logger
	read   func() (T, error)

	mu    sync.Mutex // guards the fields below
	value T          // the last valid one
	files []os.FileInfo
}

func newReloaded[T any](paths []string, logger *slog.Logger, read func() (T, error)) (*reloaded[T], error) {
	r := &reloaded[T]{paths: paths, logger: logger, read: read, files: statAll(paths)}
	var err error
	r.value, err = read()
	return r, err
}

// latest returns the value of the present files, or the last valid one. An invalid change is logged
// once.
func (r *reloaded[T]) latest() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	// before they are read: the next handshake notices a change in between
	found := statAll(r.paths)
	if slices.EqualFunc(found, r.files, unchanged) {
		return r.value
	}
	r.files = found
	value, err := r.read()
	if err != nil {
		r.logger.Error("TLS files rejected, keeping the previous ones", "files", r.paths, "error", err)
		return r.value
	}
	r.logger.Info("TLS files reloaded", "files", r.paths)
	r.value = value
	return value
}

// statAll returns the state of each file without reading it; nil for a file that is missing.
func statAll(paths []string) []os.FileInfo {
	files := make([]os.FileInfo, len(paths))
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil {
			files[i] = info
		}
	}
	return files
}

func unchanged(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
