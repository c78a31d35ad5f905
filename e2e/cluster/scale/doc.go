// Package scale measures the server beside an API server with many objects. Nothing acts on them:
// there is no KEDA, no HPA, no scheduler and no kubelet. By default it tries a small fleet; `make
// scale` takes that of docs/scale.md.
package scale
