package events

import (
	"fmt"
	"os"
	"strings"
)

// inClusterNamespace is the file with the name of the pod's namespace.
const inClusterNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// PodNamespace returns the namespace of this process's pod.
func PodNamespace() (string, error) {
	name, err := os.ReadFile(inClusterNamespace)
	if err != nil {
		return "", fmt.Errorf("namespace of this pod: %w; mount a token of its service account", err)
	}
	return strings.TrimSpace(string(name)), nil
}
