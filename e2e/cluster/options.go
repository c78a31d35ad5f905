package cluster

import (
	"slices"

	"github.com/wva-project/wva/e2e/cluster/kubelet"
)

// Options are the components beside etcd and the API server. Each is off by default, and brings
// along the others that it needs.
type Options struct {
	// KEDACRDs defines KEDA's kinds: ScaledObject, TriggerAuthentication and the others. Nothing
	// acts on them.
	KEDACRDs bool
	// LeaderWorkerSetCRD defines the LeaderWorkerSet kind. Nothing acts on it.
	LeaderWorkerSetCRD bool
	// MonitorCRDs defines the kinds ServiceMonitor and PodMonitor of prometheus-operator. Nothing
	// acts on them.
	MonitorCRDs bool
	// CertManagerCRDs defines the kinds Certificate, Issuer and ClusterIssuer. Nothing acts on
	// them.
	CertManagerCRDs bool
	// ControllerManager runs Kubernetes' own controllers: Deployments get pods, the HPA scales.
	ControllerManager bool
	// Scheduler gives pods a node. There are none without KWOK.
	Scheduler bool
	// KWOK plays kubelet: nodes made by AddNode are Ready, and pods on them run. It brings the
	// controllers and the scheduler, and one node for pods without GPUs.
	KWOK bool
	// KEDA runs KEDA's operator, metrics adapter and admission webhooks. It brings KWOK and KEDA's
	// kinds. Its ports are fixed, so that there can be one such cluster at a time.
	KEDA bool
	// WVA runs the pods of wva's image for real: the image is built from this repository, and a
	// kubelet starts it with the arguments, environment, volumes and probes of the pod. It brings
	// KWOK, which plays all other pods.
	WVA bool
	// Prometheus does the same for the pods of Prometheus' image.
	Prometheus bool
	// Images are further images whose pods run for real.
	Images []kubelet.Image
	// Helm builds Helm.
	Helm bool
}

// complete turns on the options that others need.
func (o Options) complete() Options {
	o.KWOK = o.KWOK || o.KEDA || o.WVA || o.Prometheus || len(o.Images) > 0
	o.ControllerManager = o.ControllerManager || o.KWOK
	o.Scheduler = o.Scheduler || o.KWOK
	o.KEDACRDs = o.KEDACRDs || o.KEDA
	return o
}

// Components names the components of the options, in the order of Known.
func (o Options) Components() []string {
	o = o.complete()
	needed := []string{etcd, apiServer, kubectl}
	for _, more := range []struct {
		wanted bool
		names  []string
	}{
		{o.ControllerManager, []string{controllerManager}},
		{o.Scheduler, []string{scheduler}},
		{o.KWOK, []string{kwok}},
		{o.KEDACRDs, []string{kedaManifests}},
		{o.KEDA, []string{kedaOperator, kedaAdapter, kedaWebhooks}},
		{o.LeaderWorkerSetCRD, []string{lwsManifests}},
		{o.Prometheus, []string{prometheus}},
		{o.Helm, []string{helm}},
		{o.MonitorCRDs, []string{prometheusOperatorManifests}},
		{o.CertManagerCRDs, []string{certManagerManifests}},
	} {
		if more.wanted {
			needed = append(needed, more.names...)
		}
	}
	return slices.DeleteFunc(Known(), func(name string) bool { return !slices.Contains(needed, name) })
}
