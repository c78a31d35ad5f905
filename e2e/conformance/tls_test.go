package conformance

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
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wva-project/wva/scaler"
)

// authority signs certificates for 127.0.0.1.
type authority struct {
	*testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

func newAuthority(t *testing.T) *authority {
	a := &authority{T: t}
	a.certificate, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.pem = encode("CERTIFICATE", a.certificate.Raw)
	return a
}

// sign returns a certificate and its key; the first one signs itself.
func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(a, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(a, err)
	return certificate, key
}

// leaf returns a certificate and its key in PEM, good for both ends.
func (a *authority) leaf(name string) (certificate, key string) {
	signed, private := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der, err := x509.MarshalECPrivateKey(private)
	require.NoError(a, err)
	return encode("CERTIFICATE", signed.Raw), encode("EC PRIVATE KEY", der)
}

func encode(blockType string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: der}))
}

// mutual makes a server answer holders of the authority's certificates only.
func (a *authority) mutual(_ *world, o *scaler.ServerOptions) {
	certificate, key := a.leaf("wva")
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	require.NoError(a, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	o.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}
}

// TestOnlyAKEDAWithAClientCertificateGetsAnAnswer gives KEDA the parameters of a
// TriggerAuthentication: mTLS is its only client authentication.
func TestOnlyAKEDAWithAClientCertificateGetsAnAnswer(t *testing.T) {
	t.Parallel()
	trusted, foreign := newAuthority(t), newAuthority(t)
	w := newWorld(t, trusted.mutual)
	w.post(w.decided("a", 3))
	certificate, key := trusted.leaf("keda")
	foreignCertificate, foreignKey := foreign.leaf("keda")

	k := w.trigger("a")
	k.auth = map[string]string{"caCert": trusted.pem, "tlsClientCert": certificate, "tlsClientKey": key}
	k.requireNumber(t, 3)
	requireSpec(t, k, k.poll(t).GetMetricSpecForScaling(t.Context()))
	u := k.subscribe(t)
	w.post(w.inactive("a", 3))
	require.True(t, <-u.active)

	for shown, auth := range map[string]map[string]string{
		"nothing":                nil,
		"the authority only":     {"caCert": trusted.pem},
		"a foreign certificate":  {"caCert": trusted.pem, "tlsClientCert": foreignCertificate, "tlsClientKey": foreignKey},
		"trust in somebody else": {"caCert": foreign.pem, "tlsClientCert": certificate, "tlsClientKey": key},
	} {
		k.auth = auth
		_, err := k.ask(t)
		require.ErrorContains(t, err, "code = Unavailable", shown)
	}
}
