// Package kubelet runs the pods of some images as processes, in the way a kubelet does: with the
// arguments, environment, volumes, user and probes of the pod in the API server.
//
// A container is a process in user, mount, network and PID namespaces of its own, whose root is the
// tree of the image. It has the pod's address, its mounted ConfigMaps and Secrets follow the API
// server, and the pod is Ready if its readiness probe says so. [Start] plays this part for the pods
// whose images it knows; all others are left to somebody else.
//
// Limits: one container in each pod and no init container; volumes are configMap, secret,
// projected, downwardAPI and emptyDir; probes are httpGet, and the hooks sleep only. A pod that
// needs more fails, and its status says why. Resources are not limited, and restarts are faster
// than a real kubelet's. Linux only.
package kubelet
