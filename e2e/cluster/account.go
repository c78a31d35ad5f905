package cluster

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Account is a service account, with the permissions of its pods.
type Account struct {
	// Config is the account's, without a rate limit.
	Config *rest.Config
	// Kubeconfig is the path of the same as a file, which exists inside only.
	Kubeconfig string
}

// Account returns a service account, with a token of one day. It creates the namespace and the
// account if they are missing. The rules are granted in all namespaces, beside the existing
// bindings of the account; without rules nothing more is granted.
func (c *Cluster) Account(ctx context.Context, namespace, name string, rules ...rbacv1.PolicyRule) (*Account, error) {
	if err := c.makeAccount(ctx, namespace, name); err != nil {
		return nil, fmt.Errorf("make the account %s/%s: %w", namespace, name, err)
	}
	if len(rules) > 0 {
		if err := c.grant(ctx, namespace, name, rules); err != nil {
			return nil, fmt.Errorf("grant rules to the account %s/%s: %w", namespace, name, err)
		}
	}
	lifetime := int64(24 * time.Hour / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime}}
	request, err := c.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("get a token for the account %s/%s: %w", namespace, name, err)
	}
	account := &Account{Config: c.restConfig(), Kubeconfig: c.path(namespace + "-" + name + ".kubeconfig")}
	account.Config.BearerToken = request.Status.Token
	return account, writeKubeconfig(account.Kubeconfig, account.Config)
}

func (c *Cluster) makeAccount(ctx context.Context, namespace, name string) error {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err := c.Client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err = c.Client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

func (c *Cluster) grant(ctx context.Context, namespace, name string, rules []rbacv1.PolicyRule) error {
	meta := metav1.ObjectMeta{GenerateName: namespace + "-" + name + "-"}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	role, err := c.Client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}
	_, err = c.Client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	return err
}

// restConfig is a configuration without credentials. It contains data and no names of files:
// client-go starts a goroutine that never ends for each certificate that it reads from a file.
func (c *Cluster) restConfig() *rest.Config {
	return &rest.Config{
		Host: c.address(), TLSClientConfig: rest.TLSClientConfig{CAData: c.servers.pem},
		QPS: -1, // no limit
	}
}

func writeKubeconfig(path string, config *rest.Config) error {
	const name = "wva-cluster"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
	}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return nil
}
