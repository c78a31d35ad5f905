package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// environment returns the variables of the container, sorted.
func (w *worker) environment(ctx context.Context) (map[string]string, error) {
	variables := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": w.pod.Name, "HOME": "/",
	}
	if links := w.pod.Spec.EnableServiceLinks; links == nil || *links {
		if err := w.serviceLinks(ctx, variables); err != nil {
			return nil, err
		}
	}
	maps.Copy(variables, w.options.Environment)
	container := &w.pod.Spec.Containers[0]
	for _, from := range container.EnvFrom {
		if err := w.variablesFrom(ctx, from, variables); err != nil {
			return nil, err
		}
	}
	for _, variable := range container.Env {
		value := expand(variable.Value, variables)
		if variable.ValueFrom != nil {
			var err error
			if value, err = w.valueFrom(ctx, variable.ValueFrom); err != nil {
				return nil, fmt.Errorf("the variable %s: %w", variable.Name, err)
			}
		}
		variables[variable.Name] = value
	}
	return variables, nil
}

func (w *worker) variablesFrom(ctx context.Context, from corev1.EnvFromSource, variables map[string]string) error {
	var read reader
	switch {
	case from.ConfigMapRef != nil:
		read = w.configMap(from.ConfigMapRef.Name, nil, from.ConfigMapRef.Optional)
	case from.SecretRef != nil:
		read = w.secret(from.SecretRef.Name, nil, from.SecretRef.Optional)
	default:
		return nil
	}
	files, err := read(ctx)
	for key, value := range files {
		variables[from.Prefix+key] = string(value)
	}
	return err
}

func (w *worker) valueFrom(ctx context.Context, source *corev1.EnvVarSource) (string, error) {
	var read reader
	var key string
	switch {
	case source.FieldRef != nil:
		return w.field(source.FieldRef.FieldPath)
	case source.ResourceFieldRef != nil:
		return w.resource(source.ResourceFieldRef)
	case source.ConfigMapKeyRef != nil:
		key, read = source.ConfigMapKeyRef.Key, w.configMap(source.ConfigMapKeyRef.Name, nil, source.ConfigMapKeyRef.Optional)
	case source.SecretKeyRef != nil:
		key, read = source.SecretKeyRef.Key, w.secret(source.SecretKeyRef.Name, nil, source.SecretKeyRef.Optional)
	default:
		return "", fmt.Errorf("this kubelet has no source %v", source)
	}
	files, err := read(ctx)
	return string(files[key]), err
}

// field returns a field of the pod.
func (w *worker) field(path string) (string, error) {
	m, spec := &w.pod.ObjectMeta, &w.pod.Spec
	values := map[string]string{
		"metadata.name": m.Name, "metadata.namespace": m.Namespace, "metadata.uid": string(m.UID), "spec.nodeName": spec.NodeName,
		"spec.serviceAccountName": spec.ServiceAccountName, "status.podIP": w.pod.Status.PodIP, "status.podIPs": w.pod.Status.PodIP,
		"status.hostIP": w.pod.Status.HostIP,
	}
	if value, found := values[path]; found {
		return value, nil
	}
	for prefix, entries := range map[string]map[string]string{"metadata.labels": m.Labels, "metadata.annotations": m.Annotations} {
		if key, found := strings.CutPrefix(path, prefix); found {
			if key == "" {
				return lines(entries), nil
			}
			return entries[strings.Trim(key, "[]'")], nil
		}
	}
	return "", fmt.Errorf("this kubelet has no field %q", path)
}

// lines formats labels as the downward API does.
func lines(entries map[string]string) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		fmt.Fprintf(&text, "%s=%q\n", key, entries[key])
	}
	return text.String()
}

// resource returns a limit or request of the container, in units of the divisor, rounded up.
func (w *worker) resource(ref *corev1.ResourceFieldSelector) (string, error) {
	kind, name, found := strings.Cut(ref.Resource, ".")
	list := w.pod.Spec.Containers[0].Resources.Requests
	if kind == "limits" {
		list = w.pod.Spec.Containers[0].Resources.Limits
	}
	quantity, has := list[corev1.ResourceName(name)]
	if !found || !has {
		return "", fmt.Errorf("the container has no %s; this kubelet does not use the node's", ref.Resource)
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	return strconv.FormatInt(int64(math.Ceil(quantity.AsApproximateFloat64()/divisor.AsApproximateFloat64())), 10), nil
}

// serviceLinks adds the variables of the Services in the pod's namespace.
func (w *worker) serviceLinks(ctx context.Context, variables map[string]string) error {
	services, err := w.options.Client.CoreV1().Services(w.pod.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, service := range services.Items {
		if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone || len(service.Spec.Ports) == 0 {
			continue
		}
		prefix := strings.ToUpper(strings.ReplaceAll(service.Name, "-", "_"))
		host, first := service.Spec.ClusterIP, strconv.Itoa(int(service.Spec.Ports[0].Port))
		variables[prefix+"_SERVICE_HOST"], variables[prefix+"_SERVICE_PORT"] = host, first
		for i, port := range service.Spec.Ports {
			number, protocol := strconv.Itoa(int(port.Port)), string(cmp.Or(port.Protocol, corev1.ProtocolTCP))
			if port.Name != "" {
				variables[prefix+"_SERVICE_PORT_"+strings.ToUpper(strings.ReplaceAll(port.Name, "-", "_"))] = number
			}
			url := strings.ToLower(protocol) + "://" + host + ":" + number
			if i == 0 {
				variables[prefix+"_PORT"] = url
			}
			link := prefix + "_PORT_" + number + "_" + protocol
			variables[link], variables[link+"_PROTO"] = url, strings.ToLower(protocol)
			variables[link+"_PORT"], variables[link+"_ADDR"] = number, host
		}
	}
	return nil
}

// expand replaces $(NAME) by the value of a variable. An unknown one stays, and $$ is a $.
func expand(text string, variables map[string]string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		text = rest
		switch name, after, closed := strings.Cut(strings.TrimPrefix(rest, "("), ")"); {
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "(") && closed:
			if value, known := variables[name]; known {
				out.WriteString(value)
			} else {
				out.WriteString("$(" + name + ")")
			}
			text = after
		default:
			out.WriteByte('$')
		}
	}
}
