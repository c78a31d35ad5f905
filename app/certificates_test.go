package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// certificates are an authority, a server for the loopback and two clients, in files.
type certificates struct {
	directory   string
	authorities *x509.CertPool
	root        *x509.Certificate
	rootKey     *ecdsa.PrivateKey
}

func newCertificates(t *testing.T) *certificates {
	t.Helper()
	c := &certificates{directory: t.TempDir(), authorities: x509.NewCertPool()}
	c.root, c.rootKey = c.issue(t, "ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	c.authorities.AddCert(c.root)
	c.issue(t, "server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	c.issue(t, "keda", &x509.Certificate{DNSNames: []string{"keda-operator"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	c.issue(t, "stranger", &x509.Certificate{DNSNames: []string{"stranger"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return c
}

// issue writes name.pem and name.key. The first certificate signs itself.
func (c *certificates) issue(t *testing.T, name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	issuer, issuerKey := c.root, c.rootKey
	if issuer == nil {
		issuer, issuerKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, issuerKey)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(c.path(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(c.path(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return certificate, key
}

func (c *certificates) path(name string) string { return filepath.Join(c.directory, name) }

func (c *certificates) client(t *testing.T, name string) *tls.Config {
	t.Helper()
	identity, err := tls.LoadX509KeyPair(c.path(name+".pem"), c.path(name+".key"))
	require.NoError(t, err)
	return &tls.Config{RootCAs: c.authorities, Certificates: []tls.Certificate{identity}, MinVersion: tls.VersionTLS12}
}
