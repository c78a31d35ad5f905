package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// Options are the cluster whose Services are served.
type Options struct {
	Client kubernetes.Interface
	// DNS is the address of the DNS server; its port is 53.
	DNS string
	// Relayed reports whether the pod of an address has a network of its own. The Service
	// kubernetes is relayed in any case.
	Relayed func(address string) bool
}

// Server answers until Close.
type Server struct {
	options   Options
	watch     informers.SharedInformerFactory
	services  corelisters.ServiceLister
	endpoints discoverylisters.EndpointSliceLister
	dns       *dnsServer
	cancel    context.CancelFunc
	changed   chan struct{}
	group     sync.WaitGroup
	relays    map[string]*relay // by address and port; of the goroutine that runs follow
}

// Start returns once names resolve.
func Start(ctx context.Context, options Options) (*Server, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{
		options: options, watch: informers.NewSharedInformerFactory(options.Client, 0), cancel: cancel,
		changed: make(chan struct{}, 1), relays: map[string]*relay{},
	}
	services, endpoints := s.watch.Core().V1().Services(), s.watch.Discovery().V1().EndpointSlices()
	s.services, s.endpoints = services.Lister(), endpoints.Lister()
	_, servicesErr := services.Informer().AddEventHandler(s.signal())
	_, endpointsErr := endpoints.Informer().AddEventHandler(s.signal())
	if err := errors.Join(servicesErr, endpointsErr); err != nil {
		cancel()
		return nil, fmt.Errorf("watch Services: %w", err)
	}
	s.watch.Start(life.Done())
	for kind, ok := range s.watch.WaitForCacheSync(ctx.Done()) {
		if !ok {
			s.Close()
			return nil, fmt.Errorf("watch %v: %w", kind, ctx.Err())
		}
	}
	var err error
	if s.dns, err = startDNS(options.DNS, s.resolve); err != nil {
		s.Close()
		return nil, err
	}
	s.group.Go(func() { s.follow(life) })
	return s, nil
}

// Close ends all connections.
func (s *Server) Close() {
	s.cancel()
	if s.dns != nil {
		s.dns.close()
	}
	s.watch.Shutdown()
	s.group.Wait()
}

// signal makes the handlers that note a change.
func (s *Server) signal() cache.ResourceEventHandler {
	note := func() {
		select {
		case s.changed <- struct{}{}:
		default: // one is noted
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { note() }, UpdateFunc: func(any, any) { note() }, DeleteFunc: func(any) { note() },
	}
}

// follow keeps one relay for each port of a Service that needs it.
func (s *Server) follow(ctx context.Context) {
	defer func() {
		for _, r := range s.relays {
			r.close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
			s.update()
		}
	}
}

func (s *Server) update() {
	all, err := s.services.List(labels.Everything())
	if err != nil {
		return // it reads a cache
	}
	wanted := map[string]bool{}
	for _, service := range all {
		for _, port := range service.Spec.Ports {
			address := net.JoinHostPort(service.Spec.ClusterIP, fmt.Sprint(port.Port))
			targets, needed := s.targets(service, port)
			if !needed || service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone {
				continue
			}
			wanted[address] = true
			if s.relays[address] == nil {
				r, err := startRelay(address)
				if err != nil {
					continue // a listener of the loopback answers there
				}
				s.relays[address] = r
			}
			s.relays[address].set(targets)
		}
	}
	for address, r := range s.relays {
		if !wanted[address] {
			r.close()
			delete(s.relays, address)
		}
	}
}

// targets returns the ready endpoints of a Service's port, and whether it needs a relay.
func (s *Server) targets(service *corev1.Service, port corev1.ServicePort) (targets []string, needed bool) {
	needed = service.Namespace == "default" && service.Name == "kubernetes"
	for _, slice := range s.slices(service) {
		for _, p := range slice.Ports {
			if p.Port == nil || p.Name == nil || *p.Name != port.Name {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				for _, address := range endpoint.Addresses {
					needed = needed || s.options.Relayed(address)
					if isReady(endpoint) {
						targets = append(targets, net.JoinHostPort(address, fmt.Sprint(*p.Port)))
					}
				}
			}
		}
	}
	return targets, needed
}

func (s *Server) slices(service *corev1.Service) []*discoveryv1.EndpointSlice {
	selector := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name})
	found, err := s.endpoints.EndpointSlices(service.Namespace).List(selector)
	if err != nil {
		return nil // it reads a cache
	}
	return found
}

// isReady follows the API: unknown counts as ready.
func isReady(endpoint discoveryv1.Endpoint) bool {
	return endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
}

// resolve returns the addresses of a Service: its own, or for a headless one those of its pods.
func (s *Server) resolve(namespace, name string) (addresses []net.IP, found bool) {
	service, err := s.services.Services(namespace).Get(name)
	if err != nil {
		return nil, false
	}
	if service.Spec.ClusterIP != corev1.ClusterIPNone {
		if address := net.ParseIP(service.Spec.ClusterIP); address != nil {
			addresses = append(addresses, address)
		}
		return addresses, true
	}
	for _, slice := range s.slices(service) {
		for _, endpoint := range slice.Endpoints {
			for _, text := range endpoint.Addresses {
				if address := net.ParseIP(text); address != nil && isReady(endpoint) {
					addresses = append(addresses, address)
				}
			}
		}
	}
	return addresses, true
}
