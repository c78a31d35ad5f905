package chart

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/wva-project/wva/scaler"
)

// parameters returns the parameters that KEDA reads for a trigger: from the keys of a Secret in its
// own namespace.
func parameters(t *testing.T, all objects, kedaNamespace string) map[string]string {
	t.Helper()
	read := map[string]string{}
	for _, target := range all.one(t, "ClusterTriggerAuthentication").at("spec", "secretTargetRef").([]any) {
		row := target.(map[string]any)
		o := all.named(t, "Secret", row["name"].(string))
		require.Equal(t, kedaNamespace, o.at("metadata", "namespace"))
		read[row["parameter"].(string)] = string(as[corev1.Secret](t, o).Data[row["key"].(string)])
	}
	return read
}

// serverTLS returns the server's configuration from the Secret that the Deployment mounts.
func serverTLS(t *testing.T, all objects) *tls.Config {
	t.Helper()
	directory := t.TempDir()
	for _, volume := range as[appsv1.Deployment](t, all.one(t, "Deployment")).Spec.Template.Spec.Volumes {
		if volume.Name == "tls" {
			for key, content := range as[corev1.Secret](t, all.named(t, "Secret", volume.Secret.SecretName)).Data {
				require.NoError(t, os.WriteFile(filepath.Join(directory, key), content, 0o600))
			}
		}
	}
	settings := load(t, all).GRPC.TLS
	files := scaler.TLSFiles{AllowedNames: settings.AllowedClients}
	for _, path := range []struct {
		to   *string
		from string
	}{{&files.Cert, settings.CertFile}, {&files.Key, settings.KeyFile}, {&files.ClientCA, settings.ClientCAFile}} {
		*path.to = filepath.Join(directory, filepath.Base(path.from))
	}
	c, err := scaler.NewTLSConfig(files, nil)
	require.NoError(t, err)
	return c
}

// handshake connects as KEDA does, with the parameters of a trigger, to a host name.
func handshake(t *testing.T, server *tls.Config, parameters map[string]string, host string) error {
	t.Helper()
	authorities := x509.NewCertPool()
	require.True(t, authorities.AppendCertsFromPEM([]byte(parameters["caCert"])))
	identity, err := tls.X509KeyPair([]byte(parameters["tlsClientCert"]), []byte(parameters["tlsClientKey"]))
	require.NoError(t, err)
	here, there := net.Pipe()
	defer here.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		connection := tls.Server(there, server)
		answered <- connection.HandshakeContext(ctx)
		_ = there.Close() // nothing more is sent
	}()
	client := tls.Client(here, &tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{identity}, ServerName: host})
	if err := client.HandshakeContext(ctx); err != nil {
		_ = here.Close() // ends the server's
		return errors.Join(err, <-answered)
	}
	// A server that rejects the client says so in its first answer.
	_, err = client.Read(make([]byte, 1))
	if rejected := <-answered; rejected != nil {
		return rejected
	}
	require.ErrorIs(t, err, io.EOF)
	return nil
}

func TestGeneratedCertificatesConnectKEDAWithTheServer(t *testing.T) {
	for _, test := range []struct{ file, kedaNamespace, host string }{
		{"tls-generate", "keda", "wva.keda.svc"},
		{"tls-generate", "keda", "wva.keda.svc.cluster.local"},
		{"tls-generate-other-namespace", "keda-system", "wva.keda.svc"},
		{"names", "keda", "scaler.keda.svc.example.internal"},
	} {
		all := render(t, "--values", "testdata/values/"+test.file+".yaml")
		require.NoError(t, handshake(t, serverTLS(t, all), parameters(t, all, test.kedaNamespace), test.host), test.file)
	}
}

func TestGeneratedCertificatesConnectNobodyElse(t *testing.T) {
	one, other := render(t, "--set", "tls.mode=generate"), render(t, "--set", "tls.mode=generate")
	keda := parameters(t, one, "keda")
	require.ErrorContains(t, handshake(t, serverTLS(t, one), keda, "wva.elsewhere.svc"), "wva.elsewhere.svc")
	require.Error(t, handshake(t, serverTLS(t, other), keda, "wva.keda.svc"), "another authority")

	stranger := parameters(t, other, "keda")
	stranger["caCert"] = keda["caCert"]
	require.Error(t, handshake(t, serverTLS(t, one), stranger, "wva.keda.svc"), "a client of another authority")

	renamed := serverTLS(t, one)
	server := as[corev1.Secret](t, one.named(t, "Secret", "wva-tls")).Data
	self := map[string]string{"caCert": keda["caCert"], "tlsClientCert": string(server["tls.crt"]), "tlsClientKey": string(server["tls.key"])}
	require.ErrorContains(t, handshake(t, renamed, self, "wva.keda.svc"), "no name of the client's certificate", "a name that is not allowed")
}

func TestCertManagerWritesTheSecretsThatAreRead(t *testing.T) {
	for file, issuer := range map[string]string{"tls-cert-manager": "Issuer wva", "tls-cert-manager-cluster-issuer": "ClusterIssuer internal"} {
		all := render(t, "--values", "testdata/values/"+file+".yaml")
		settings := load(t, all).GRPC.TLS
		server, client := all.named(t, "Certificate", "wva-tls"), all.named(t, "Certificate", "wva-keda-client")
		for _, certificate := range (objects{server, client}) {
			require.Equal(t, issuer, certificate.at("spec", "issuerRef", "kind").(string)+" "+certificate.at("spec", "issuerRef", "name").(string))
		}
		require.Contains(t, server.at("spec", "dnsNames"), "wva.keda.svc")
		require.Equal(t, []any{settings.AllowedClients[0]}, client.at("spec", "dnsNames"))
		for _, target := range all.one(t, "ClusterTriggerAuthentication").at("spec", "secretTargetRef").([]any) {
			require.Equal(t, client.at("spec", "secretName"), target.(map[string]any)["name"])
		}
		for _, volume := range as[appsv1.Deployment](t, all.one(t, "Deployment")).Spec.Template.Spec.Volumes {
			if volume.Name == "tls" {
				require.Equal(t, server.at("spec", "secretName"), volume.Secret.SecretName)
			}
		}
	}
}

func TestWithoutTLSThereIsNoAuthentication(t *testing.T) {
	all := render(t)
	for _, kind := range []string{"Secret", "ClusterTriggerAuthentication", "Certificate", "Issuer"} {
		require.Empty(t, all.all(kind))
	}
	require.Empty(t, load(t, all).GRPC.TLS.CertFile)
}
