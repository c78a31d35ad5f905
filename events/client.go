package events

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

// eventClient sends events to the API server.
type eventClient struct{ rest *rest.RESTClient }

func newEventClient(given *rest.Config) (eventClient, error) {
	config := rest.CopyConfig(given)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventsBurst)
	config.Timeout = eventTimeout
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return eventClient{}, fmt.Errorf("events: %w; correct the kubeconfig", err)
	}
	return eventClient{client}, nil
}

// close ends idle connections, and with them their goroutines.
func (c eventClient) close() { utilnet.CloseIdleConnectionsFor(c.rest.Client.Transport) }

// send creates an event or, by the patch, raises the count of the equal one that exists. That one
// may have expired: then the event is created anew. It returns the event as stored, or nil if an
// earlier attempt created the event and its answer was lost; or else the verb that failed.
func (c eventClient) send(ctx context.Context, event *corev1.Event, patch []byte) (stored *corev1.Event, verb string, err error) {
	stored = new(corev1.Event)
	if patch != nil {
		err = c.rest.Patch(types.StrategicMergePatchType).Namespace(event.Namespace).Resource("events").Name(event.Name).Body(patch).Do(ctx).Into(stored)
		if !apierrors.IsNotFound(err) {
			return stored, "patch", err
		}
	}
	event.ResourceVersion = "" // else it cannot be created
	err = c.rest.Post().Namespace(event.Namespace).Resource("events").Body(event).Do(ctx).Into(stored)
	if apierrors.IsAlreadyExists(err) {
		return nil, "", nil
	}
	return stored, "create", err
}

// isMissingRole reports whether an error is about permissions. The error for a namespace that is
// being deleted has the same code.
func isMissingRole(err error) bool {
	return apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// isFinal reports whether the API server would give the same answer again.
func isFinal(err error) bool {
	answer, answered := errors.AsType[*apierrors.StatusError](err)
	if !answered {
		return false
	}
	code := answer.ErrStatus.Code
	return code >= 400 && code < 500 && !apierrors.IsTooManyRequests(err) && !apierrors.IsTimeout(err)
}

// quiet returns a context in which client-go logs nothing: failures are logged here, once.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, klog.Logger{}) }
