package cluster

import (
	"context"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

// clients are the clients of the API server. They share connections and a rate limit.
type clients struct {
	http      *http.Client
	objects   dynamic.Interface
	resources discovery.CachedDiscoveryInterfaceWithContext
	served    discovery.ServerResourcesInterfaceWithContext // without a cache
	kinds     *restmapper.DeferredDiscoveryRESTMapper
}

// newClients copies the configuration.
func newClients(given *rest.Config) (*clients, error) {
	config := rest.CopyConfig(given)
	config.UserAgent = "wva"
	config.Timeout = 0 // it would end watches; requests have deadlines of their own
	if config.QPS == 0 {
		config.QPS = defaultQPS
	}
	if config.Burst == 0 {
		config.Burst = defaultBurst
	}
	if config.RateLimiter == nil && config.QPS > 0 {
		config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	found, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClientWithContext(found)
	return &clients{
		http: client, objects: objects, resources: cached, served: found, kinds: restmapper.NewDeferredDiscoveryRESTMapperWithContext(cached),
	}, nil
}

// close ends idle connections, and with them their goroutines.
func (c *clients) close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

// quiet returns a context in which client-go logs nothing: failures are logged here, once.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, klog.Logger{}) }
