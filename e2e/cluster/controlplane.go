package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// startControlPlane starts etcd and the API server, and returns once the API server is ready.
func (c *Cluster) startControlPlane(ctx context.Context, options Options) error {
	store, err := c.startEtcd()
	if err != nil {
		return err
	}
	if c.port, err = FreePort(); err != nil {
		return err
	}
	if err := c.writeSecrets(); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	if err := c.run(apiServer, c.apiServerArguments(store, options)); err != nil {
		return err
	}
	if err := c.admit(); err != nil {
		return err
	}
	return c.await(ctx, "the API server is ready", func(ctx context.Context) error {
		_, err := c.Client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
}

// startEtcd starts the store and returns its URL. It needs no TLS: the network is private.
func (c *Cluster) startEtcd() (string, error) {
	var urls [2]string
	for i := range urls {
		port, err := FreePort()
		if err != nil {
			return "", err
		}
		urls[i] = "http://127.0.0.1:" + strconv.Itoa(port)
	}
	client, peer := urls[0], urls[1]
	return client, c.run(etcd, []string{
		"--data-dir", c.path("etcd"), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer,
	})
}

// writeSecrets makes the authorities and writes the files that the API server and the controllers
// read.
func (c *Cluster) writeSecrets() error {
	var err error
	if c.clients, err = newAuthority("clients"); err != nil {
		return err
	}
	if c.servers, err = newAuthority("servers"); err != nil {
		return err
	}
	aggregation, err := newAuthority("aggregation")
	if err != nil {
		return err
	}
	server, serverErr := c.servers.issue(identity{name: apiServer, hosts: []string{
		"127.0.0.1", advertised, "10.96.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local",
	}})
	aggregator, aggregatorErr := aggregation.issue(identity{name: "front-proxy-client"})
	public, private, keysErr := serviceAccountKeys()
	if err := errors.Join(serverErr, aggregatorErr, keysErr); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(c.path("clients.crt"), c.clients.pem, 0o644),
		os.WriteFile(c.path("servers.crt"), c.servers.pem, 0o644),
		os.WriteFile(c.path("aggregation.crt"), aggregation.pem, 0o644),
		server.write(c.path("server.crt"), c.path("server.key")),
		aggregator.write(c.path("aggregator.crt"), c.path("aggregator.key")),
		os.WriteFile(c.path("accounts.pub"), public, 0o644),
		os.WriteFile(c.path("accounts.key"), private, 0o600),
	)
}

func (c *Cluster) apiServerArguments(store string, options Options) []string {
	arguments := []string{
		"--etcd-servers", store, "--secure-port", strconv.Itoa(c.port), "--advertise-address", advertised,
		"--service-cluster-ip-range", services, "--authorization-mode", "Node,RBAC",
		"--tls-cert-file", c.path("server.crt"), "--tls-private-key-file", c.path("server.key"),
		"--client-ca-file", c.path("clients.crt"),
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", c.path("accounts.pub"), "--service-account-signing-key-file", c.path("accounts.key"),
		"--requestheader-client-ca-file", c.path("aggregation.crt"), "--requestheader-allowed-names", "front-proxy-client",
		"--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group",
		"--requestheader-extra-headers-prefix", "X-Remote-Extra-",
		"--proxy-client-cert-file", c.path("aggregator.crt"), "--proxy-client-key-file", c.path("aggregator.key"),
		// an aggregated server is called by its pod's address: no kube-proxy runs
		"--enable-aggregator-routing=true",
		"--kubelet-preferred-address-types", "InternalIP", // names of nodes do not resolve
	}
	if !options.ControllerManager {
		// Nobody creates the default service accounts that it requires of every pod.
		arguments = append(arguments, "--disable-admission-plugins", "ServiceAccount")
	}
	return arguments
}

// admit makes the administrator's configuration and client.
func (c *Cluster) admit() error {
	credentials, err := c.clients.issue(identity{name: "admin", organizations: []string{"system:masters"}})
	if err != nil {
		return err
	}
	c.Config = c.restConfig()
	c.Config.CertData, c.Config.KeyData = credentials.certificate, credentials.key
	if c.Client, err = kubernetes.NewForConfig(c.Config); err != nil {
		return err
	}
	return writeKubeconfig(c.Kubeconfig, c.Config)
}

// startControllerManager returns once it has made the default service account, without which no pod
// is admitted.
func (c *Cluster) startControllerManager(ctx context.Context) error {
	err := c.run(controllerManager, []string{
		"--kubeconfig", c.Kubeconfig, "--leader-elect=false", "--secure-port", "0",
		"--use-service-account-credentials", "--service-account-private-key-file", c.path("accounts.key"),
		"--root-ca-file", c.path("servers.crt"),
		"--kube-api-qps", "300", "--kube-api-burst", "600",
		// The defaults, 15 s and 5 min, are too slow for tests. A busy machine may be late with the
		// leases of its pretended nodes, and their pods must not become unready for that.
		"--node-monitor-grace-period", "5m",
		"--horizontal-pod-autoscaler-sync-period", "2s", "--horizontal-pod-autoscaler-downscale-stabilization", "10s",
	})
	if err != nil {
		return err
	}
	return c.await(ctx, "the controllers run", func(ctx context.Context) error {
		_, err := c.Client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func (c *Cluster) startScheduler(context.Context) error {
	return c.run(scheduler, []string{"--kubeconfig", c.Kubeconfig, "--leader-elect=false", "--secure-port", "0"})
}
