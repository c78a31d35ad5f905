package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// authority signs the certificates of one cluster.
type authority struct {
	pem         []byte
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// pair is a certificate and its key, in PEM.
type pair struct{ certificate, key []byte }

// identity is the subject of a certificate: the client's name and groups, and the names of a
// server.
type identity struct {
	name          string
	organizations []string
	hosts         []string // names and addresses
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := certificateTemplate(identity{name: name})
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{pem: encode("CERTIFICATE", der), certificate: certificate, key: key}, nil
}

// issue makes a certificate that serves both as a server's and as a client's.
func (a *authority) issue(who identity) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	template, err := certificateTemplate(who)
	if err != nil {
		return pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("issue the certificate of %s: %w", who.name, err)
	}
	encoded, err := encodeKey(key)
	return pair{certificate: encode("CERTIFICATE", der), key: encoded}, err
}

func certificateTemplate(who identity) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: who.name, Organization: who.organizations},
		NotBefore:    time.Now().Add(-time.Hour), // clocks differ
		NotAfter:     time.Now().AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	for _, host := range who.hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template, nil
}

// serviceAccountKeys makes the pair that signs and checks the tokens of service accounts.
func serviceAccountKeys() (public, private []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, err
	}
	private, err = encodeKey(key)
	return encode("PUBLIC KEY", der), private, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	return encode("EC PRIVATE KEY", der), err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// write puts the pair beside each other.
func (p pair) write(certificate, key string) error {
	if err := os.WriteFile(certificate, p.certificate, 0o644); err != nil {
		return err
	}
	return os.WriteFile(key, p.key, 0o600)
}
