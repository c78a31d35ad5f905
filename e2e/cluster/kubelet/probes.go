package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probes are the probes of one container. Nil ones succeed.
type probes struct {
	startup, liveness, readiness *probe
}

// probe asks one URL.
type probe struct {
	name            string
	url             string
	client          *http.Client
	delay, period   time.Duration
	success, failed int32 // results in a row that count
}

// result is a change. Failed is why the container has to be restarted.
type result struct {
	ready  bool
	failed string
}

func newProbes(container *corev1.Container, address string) (*probes, error) {
	var p probes
	var errs []error
	for _, row := range []struct {
		name string
		spec *corev1.Probe
		to   **probe
	}{
		{"startup", container.StartupProbe, &p.startup},
		{"liveness", container.LivenessProbe, &p.liveness},
		{"readiness", container.ReadinessProbe, &p.readiness},
	} {
		if row.spec == nil {
			continue
		}
		made, err := newProbe(row.name, row.spec, container, address)
		errs = append(errs, err)
		*row.to = made
	}
	return &p, errors.Join(errs...)
}

func newProbe(name string, spec *corev1.Probe, container *corev1.Container, address string) (*probe, error) {
	if spec.HTTPGet == nil {
		return nil, fmt.Errorf("the %s probe is no httpGet; this kubelet has no other", name)
	}
	port, err := portOf(spec.HTTPGet.Port, container)
	if err != nil {
		return nil, fmt.Errorf("the %s probe: %w", name, err)
	}
	scheme := "http"
	if spec.HTTPGet.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	seconds := func(n, otherwise int32) time.Duration {
		if n == 0 {
			n = otherwise
		}
		return time.Duration(n) * time.Second
	}
	return &probe{
		name: name, url: scheme + "://" + net.JoinHostPort(address, strconv.Itoa(port)) + spec.HTTPGet.Path,
		client: &http.Client{Timeout: seconds(spec.TimeoutSeconds, 1), Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as a kubelet's
		}},
		delay: seconds(spec.InitialDelaySeconds, 0), period: seconds(spec.PeriodSeconds, 10),
		success: max(spec.SuccessThreshold, 1), failed: max(spec.FailureThreshold, 1),
	}, nil
}

// portOf resolves the name of a container's port.
func portOf(port intstr.IntOrString, container *corev1.Container) (int, error) {
	if port.Type == intstr.Int {
		return port.IntValue(), nil
	}
	for _, p := range container.Ports {
		if p.Name == port.StrVal {
			return int(p.ContainerPort), nil
		}
	}
	return 0, fmt.Errorf("the container has no port named %q", port.StrVal)
}

// run probes until the context ends. The channel gets each result that may change something.
func (p *probes) run(ctx context.Context, group *sync.WaitGroup) <-chan result {
	results := make(chan result)
	send := func(r result) bool {
		select {
		case results <- r:
			return true
		case <-ctx.Done():
			return false
		}
	}
	group.Go(func() {
		if !p.startup.await(ctx) {
			if ctx.Err() == nil {
				send(result{failed: "the startup probe failed"})
			}
			return
		}
		group.Go(func() {
			p.liveness.watch(ctx, func(ok bool) bool { return ok || send(result{failed: "the liveness probe failed"}) })
		})
		p.readiness.watch(ctx, func(ok bool) bool { return send(result{ready: ok}) })
	})
	return results
}

// await returns whether the probe succeeds before it has failed too often.
func (p *probe) await(ctx context.Context) bool {
	started := false
	p.watch(ctx, func(ok bool) bool {
		started = ok
		return false
	})
	return started
}

// watch tells each result that counts, until tell returns false. Nil succeeds once.
func (p *probe) watch(ctx context.Context, tell func(ok bool) bool) {
	if p == nil {
		tell(true)
		return
	}
	wait, row := p.delay, int32(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = p.period
		answer := p.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		if answer {
			row = max(row, 0) + 1
		} else {
			row = min(row, 0) - 1
		}
		if counts := row >= p.success || -row >= p.failed; counts && !tell(row > 0) {
			return
		}
	}
}

// ask reports whether the URL answers with success.
func (p *probe) ask(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return false
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close() // nothing is read
	return answer.StatusCode >= 200 && answer.StatusCode < 400
}
