package cluster

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ClientOptions are the address of an API server and the limits of requests to it.
type ClientOptions struct {
	// Kubeconfig is the file with the address. Default: the cluster of this process's pod.
	Kubeconfig string
	// Context is one of the kubeconfig's. Default: its current one.
	Context string
	// QPS and Burst limit the requests for all resources together. Defaults: 20 and 40.
	QPS   float64
	Burst float64
}

// Defaults of a client.
const (
	defaultQPS   = 20
	defaultBurst = 40
)

// ClientConfig returns the configuration of a client. It sends nothing to the API server.
func ClientConfig(o ClientOptions) (*rest.Config, error) {
	config, err := o.read()
	if err != nil {
		return nil, err
	}
	config.UserAgent = "wva"
	config.QPS, config.Burst = defaultQPS, defaultBurst
	if o.QPS > 0 {
		config.QPS = float32(o.QPS)
	}
	if o.Burst > 0 {
		config.Burst = int(o.Burst)
	}
	return config, nil
}

// ParseSelector reads a label selector in the syntax of kubectl. An empty text selects everything
// and is nil.
func ParseSelector(text string) (labels.Selector, error) {
	if text == "" {
		return nil, nil
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("selector of namespaces %q: %w; write labels such as team=llm,stage!=test", text, err)
	}
	return selector, nil
}

func (o ClientOptions) read() (*rest.Config, error) {
	if o.Kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("no cluster: this process runs in none; name one with kubeconfig, or a directory with manifests")
		}
		if err != nil {
			return nil, fmt.Errorf("cluster that this process runs in: %w; mount a token of its service account", err)
		}
		return config, nil
	}
	config, err := o.load().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w; write it as kubectl config view --raw prints it", o.Kubeconfig, err)
	}
	return config, nil
}

// load reads the kubeconfig when it is first used.
func (o ClientOptions) load() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.Kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: o.Context})
}
