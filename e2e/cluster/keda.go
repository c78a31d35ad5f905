package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	kedaNamespace   = "keda"
	kedaAPIService  = "v1beta1.external.metrics.k8s.io"
	kedaAdmission   = "keda-admission"
	kedaMetricsPort = "9666" // the operator's address for the adapter
	kedaAdapterPort = "6443"
	kedaWebhookPort = "9443"
)

// startKEDA applies KEDA's manifests as they are shipped. KWOK makes their pods, which are the
// Services' endpoints; the programs run as processes, which answer on the pods' addresses since
// they listen on the Services' target ports.
func (c *Cluster) startKEDA(ctx context.Context) error {
	certificates, err := c.issueKEDA()
	if err != nil {
		return fmt.Errorf("make KEDA's certificates: %w", err)
	}
	if err := c.applyKEDA(ctx); err != nil {
		return err
	}
	account, err := c.Account(ctx, kedaNamespace, "keda-operator")
	if err != nil {
		return err
	}
	if err := c.runKEDA(certificates, account); err != nil {
		return err
	}
	return c.awaitKEDA(ctx)
}

// issueKEDA writes one certificate that serves all three programs, and returns its directory.
func (c *Cluster) issueKEDA() (string, error) {
	who := identity{name: "keda-operator"}
	for _, name := range []string{"keda-operator", "keda-metrics-apiserver", "keda-admission-webhooks"} {
		qualified := name + "." + kedaNamespace
		who.hosts = append(who.hosts, name, qualified, qualified+".svc", qualified+".svc.cluster.local")
	}
	credentials, err := c.servers.issue(who)
	if err != nil {
		return "", err
	}
	directory := c.path("keda")
	if err := os.Mkdir(directory, 0o755); err != nil {
		return "", err
	}
	return directory, errors.Join(
		credentials.write(filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key")),
		os.WriteFile(filepath.Join(directory, "ca.crt"), c.servers.pem, 0o644),
	)
}

// applyKEDA applies the manifests and gives the API server the authority of their certificates.
func (c *Cluster) applyKEDA(ctx context.Context) error {
	directory, err := Path(kedaManifests)
	if err != nil {
		return err
	}
	manifests, err := c.Kubectl(ctx, nil, "kustomize", filepath.Join(directory, "default"))
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, []byte(manifests)); err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"spec":{"caBundle":%q}}`, base64.StdEncoding.EncodeToString(c.servers.pem))
	if _, err := c.Kubectl(ctx, nil, "patch", "apiservice", kedaAPIService, "--type", "merge", "--patch", patch); err != nil {
		return err
	}
	webhooks := c.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	admission, err := webhooks.Get(ctx, kedaAdmission, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for i := range admission.Webhooks {
		admission.Webhooks[i].ClientConfig.CABundle = c.servers.pem
	}
	_, err = webhooks.Update(ctx, admission, metav1.UpdateOptions{})
	return err
}

// runKEDA starts the three programs with KEDA's own account. The ports that no Service needs are
// drawn.
func (c *Cluster) runKEDA(certificates string, account *Account) error {
	var drawn [5]string
	for i := range drawn {
		port, err := FreePort()
		if err != nil {
			return err
		}
		drawn[i] = strconv.Itoa(port)
	}
	environment := []string{
		"KUBECONFIG=" + account.Kubeconfig, "POD_NAMESPACE=" + kedaNamespace, "KEDA_CLUSTER_OBJECT_NAMESPACE=" + kedaNamespace,
		"WATCH_NAMESPACE=",
	}
	return errors.Join(
		c.run(kedaOperator, []string{
			"--enable-cert-rotation=false", "--cert-dir", certificates, "--leader-elect=false",
			"--metrics-service-bind-address", ":" + kedaMetricsPort, "--kube-api-qps", "100", "--kube-api-burst", "200",
			"--metrics-bind-address", "127.0.0.1:" + drawn[0], "--health-probe-bind-address", "127.0.0.1:" + drawn[1],
		}, environment...),
		c.run(kedaAdapter, []string{
			"--secure-port", kedaAdapterPort, "--port", drawn[2], "--cert-dir", certificates,
			"--tls-cert-file", filepath.Join(certificates, "tls.crt"), "--tls-private-key-file", filepath.Join(certificates, "tls.key"),
			"--client-ca-file", filepath.Join(certificates, "ca.crt"), "--kubeconfig", account.Kubeconfig,
			"--lister-kubeconfig", account.Kubeconfig,
			"--authentication-kubeconfig", account.Kubeconfig, "--authorization-kubeconfig", account.Kubeconfig,
		}, environment...),
		c.run(kedaWebhooks, []string{
			"--cert-dir", certificates, "--port", kedaWebhookPort,
			"--metrics-bind-address", "127.0.0.1:" + drawn[3], "--health-probe-bind-address", "127.0.0.1:" + drawn[4],
		}, environment...),
	)
}

// awaitKEDA waits for each of the three: the API server ignores a webhook that does not answer.
func (c *Cluster) awaitKEDA(ctx context.Context) error {
	for _, port := range []string{kedaMetricsPort, kedaWebhookPort} {
		err := c.await(ctx, "KEDA listens on port "+port, func(ctx context.Context) error {
			connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+port)
			if err != nil {
				return err
			}
			return connection.Close()
		})
		if err != nil {
			return err
		}
	}
	return c.await(ctx, "the API server reaches KEDA's adapter", func(ctx context.Context) error {
		_, err := c.Client.Discovery().RESTClient().Get().AbsPath("/apis/external.metrics.k8s.io/v1beta1").DoRaw(ctx)
		return err
	})
}
