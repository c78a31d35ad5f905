package collector

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/config"
)

const (
	// defaultMaxAnswer is seven times the largest answer about 50,000 pods.
	defaultMaxAnswer = 256 << 20
	// answersTogether is how many of the largest answers may be read at one time.
	answersTogether = 2
	// maxErrorAnswer is the part of an error response that is read, in bytes: people read its
	// beginning.
	maxErrorAnswer = 64 << 10
	// maxHeader is the limit of the header of an answer, in bytes.
	maxHeader = 1 << 20
	// maxConnections is above the dozen queries of a cycle, those of the cycle before that still
	// end, and Queues.
	maxConnections  = 32
	idleConnections = 14
)

// TransportOptions are the TLS settings and credentials of the connection to Prometheus. All files
// are read again when they change. The zero value is plain HTTP, or TLS with the authorities of the
// system, without credentials.
type TransportOptions struct {
	// CAFile holds, in PEM, the authorities that Prometheus' certificate is verified by. Default:
	// those of the system.
	CAFile string
	// CertFile and KeyFile hold the client's certificate and its key, in PEM. Both or neither.
	// Default: none is shown.
	CertFile string
	KeyFile  string
	// ServerName is the name that Prometheus' certificate is verified for. Default: the host of the
	// address.
	ServerName string
	// BearerToken is sent with each request. Default: none.
	BearerToken string
	// BearerTokenFile holds the token instead, as a service account's does. Default: none.
	BearerTokenFile string
	// ProxyFromEnvironment uses the proxy of HTTP_PROXY, HTTPS_PROXY and NO_PROXY. Default: no
	// proxy, whatever these say.
	ProxyFromEnvironment bool
	// MaxAnswer is the limit of one answer, in bytes after decompression; those that are read at
	// one time may be twice as large together. Default: 256 MiB.
	MaxAnswer int64
}

// NewTransport returns the transport of the collector's requests, or an error that names every
// invalid option. It follows no redirect and keeps credentials out of its errors. Its idle
// connections are closed by CloseIdleConnections of an http.Client with it.
func NewTransport(o TransportOptions) (http.RoundTripper, error) {
	defaultTo(&o.MaxAnswer, defaultMaxAnswer)
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("connection to Prometheus: %w", err)
	}
	sender, err := o.sender()
	if err != nil {
		return nil, fmt.Errorf("connection to Prometheus: %w", err)
	}
	return &transport{sender: sender, budget: &budget{each: o.MaxAnswer, together: answersTogether * o.MaxAnswer}}, nil
}

// validate reports every invalid option at once, those of the files included.
func (o TransportOptions) validate() error {
	problems := []error{o.tokenError()}
	if (o.CertFile == "") != (o.KeyFile == "") {
		problems = append(problems, errors.New("a client certificate needs its key, and a key its certificate; set both files or neither"))
	} else if _, err := config.NewTLSConfig(&config.TLSConfig{CertFile: o.CertFile, KeyFile: o.KeyFile}); err != nil {
		problems = append(problems, fmt.Errorf("%w; put a client certificate and the key that it was made for there, both in PEM", err))
	}
	if _, err := config.NewTLSConfig(&config.TLSConfig{CAFile: o.CAFile}); err != nil {
		problems = append(problems, fmt.Errorf("%w; put the authorities of Prometheus' certificate there, in PEM", err))
	}
	if o.MaxAnswer < 0 {
		problems = append(problems, fmt.Errorf("largest answer of %d bytes; set it above zero", o.MaxAnswer))
	}
	return errors.Join(problems...)
}

// tokenError returns the error of a token that cannot be used, without the token.
func (o TransportOptions) tokenError() error {
	token, source := o.BearerToken, "the bearer token"
	if o.BearerTokenFile != "" {
		if token != "" {
			return errors.New("a bearer token and a file of one are set; keep one of them")
		}
		content, err := os.ReadFile(o.BearerTokenFile)
		if err != nil {
			return fmt.Errorf("bearer token: %w; mount the secret that holds it, or correct the path", err)
		}
		if token, source = strings.TrimSpace(string(content)), "the bearer token in "+o.BearerTokenFile; token == "" {
			return fmt.Errorf("%s is empty; write the token there", source)
		}
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%s contains spaces or characters outside ASCII; remove them", source)
	}
	return nil
}

// sender returns the transport that sends requests with the credentials.
func (o TransportOptions) sender() (http.RoundTripper, error) {
	trust, err := config.NewTLSConfig(&config.TLSConfig{
		CAFile: o.CAFile, CertFile: o.CertFile, KeyFile: o.KeyFile, ServerName: o.ServerName, MinVersion: config.TLSVersions["TLS12"],
	})
	if err != nil {
		return nil, err
	}
	var watched config.TLSRoundTripperSettings
	if o.CAFile != "" {
		watched.CA = config.NewFileSecret(o.CAFile)
	}
	if o.CertFile != "" {
		watched.Cert, watched.Key = config.NewFileSecret(o.CertFile), config.NewFileSecret(o.KeyFile)
	}
	sender, err := config.NewTLSRoundTripper(trust, watched, o.connections)
	if err != nil {
		return nil, err
	}
	switch {
	case o.BearerToken != "":
		sender = config.NewAuthorizationCredentialsRoundTripper("Bearer", config.NewInlineSecret(o.BearerToken), sender)
	case o.BearerTokenFile != "":
		sender = config.NewAuthorizationCredentialsRoundTripper("Bearer", config.NewFileSecret(o.BearerTokenFile), sender)
	}
	return sender, nil
}

// connections speaks HTTP/1.1 only: a query that ends at its deadline then closes its connection,
// while the one connection of HTTP/2 would be used on after the network has lost it.
func (o TransportOptions) connections(trust *tls.Config) (http.RoundTripper, error) {
	proxy := config.ProxyConfig{ProxyFromEnvironment: o.ProxyFromEnvironment}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  proxy.Proxy(),
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSClientConfig:        trust,
		TLSHandshakeTimeout:    5 * time.Second,
		Protocols:              protocols,
		MaxConnsPerHost:        maxConnections,
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}, nil
}

// transport protects the collector from a wrong or broken server at Prometheus' address.
type transport struct {
	sender http.RoundTripper
	budget *budget
}

// RoundTrip sends a copy: the sender writes the credentials into the header that it is given.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.sender.RoundTrip(request.Clone(request.Context()))
	switch {
	case err != nil && request.URL.Scheme == "https":
		return nil, withTLSRemedy(err)
	case err != nil:
		return nil, err
	}
	if err := t.reject(response); err != nil {
		response.Body.Close()
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		response.Body = &beginning{Reader: io.LimitReader(response.Body, maxErrorAnswer), Closer: response.Body}
	} else {
		response.Body = &answerBody{ReadCloser: response.Body, budget: t.budget}
	}
	return response, nil
}

// CloseIdleConnections closes the connections that no request uses.
func (t *transport) CloseIdleConnections() {
	if closer, ok := t.sender.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// reject returns an error if an answer must not be read at all.
func (t *transport) reject(response *http.Response) error {
	if target, err := response.Location(); err == nil && response.StatusCode/100 == 3 {
		return fmt.Errorf("a redirect to %s://%s%s is not followed, as the credentials would go along; set the address of Prometheus to that "+
			"of its API, or give credentials if a login page is in front of it", target.Scheme, target.Host, beginningOf(target.EscapedPath()))
	}
	if response.StatusCode/100 == 2 && response.ContentLength > t.budget.each {
		return t.budget.exceeded()
	}
	return nil
}

// withTLSRemedy adds the remedy if the two ends do not trust each other.
func withTLSRemedy(err error) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return &remediedError{err, "set the CA file to the authority that signed Prometheus' certificate"}
	case errors.As(err, &name):
		return &remediedError{err, "set the server name to one that Prometheus' certificate holds"}
	case errors.As(err, &invalid):
		return &remediedError{err, "renew Prometheus' certificate"}
	case broken(err):
		return &remediedError{err, "if Prometheus asks for client certificates, set a certificate and key of an authority that it trusts"}
	default:
		return err
	}
}

// remediedError is an error with its remedy.
type remediedError struct {
	error
	remedy string
}

func (e *remediedError) Error() string { return e.error.Error() + "; " + e.remedy }
func (e *remediedError) Unwrap() error { return e.error }

// broken reports whether an established connection ended. A client whose certificate is rejected
// learns of it by an alert or, while it is still writing, only in this way.
func broken(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op != "dial" || errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF)
}

// beginning is the beginning of a body.
type beginning struct {
	io.Reader
	io.Closer
}
