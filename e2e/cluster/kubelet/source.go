package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type reader = func(ctx context.Context) (map[string][]byte, error)

// source returns the function that reads a volume's files.
func (w *worker) source(spec *corev1.Volume) (reader, error) {
	switch {
	case spec.ConfigMap != nil:
		return w.configMap(spec.ConfigMap.Name, spec.ConfigMap.Items, spec.ConfigMap.Optional), nil
	case spec.Secret != nil:
		return w.secret(spec.Secret.SecretName, spec.Secret.Items, spec.Secret.Optional), nil
	case spec.DownwardAPI != nil:
		return w.downward(spec.DownwardAPI.Items), nil
	case spec.Projected != nil:
		var readers []reader
		for _, source := range spec.Projected.Sources {
			read, err := w.projection(source)
			if err != nil {
				return nil, err
			}
			readers = append(readers, read)
		}
		return union(readers), nil
	default:
		return nil, errors.New("this kubelet has configMap, secret, projected, downwardAPI and emptyDir only")
	}
}

func (w *worker) projection(source corev1.VolumeProjection) (reader, error) {
	switch {
	case source.ServiceAccountToken != nil:
		return w.token(source.ServiceAccountToken), nil
	case source.ConfigMap != nil:
		return w.configMap(source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional), nil
	case source.Secret != nil:
		return w.secret(source.Secret.Name, source.Secret.Items, source.Secret.Optional), nil
	case source.DownwardAPI != nil:
		return w.downward(source.DownwardAPI.Items), nil
	default:
		return nil, errors.New("this kubelet projects serviceAccountToken, configMap, secret and downwardAPI only")
	}
}

func union(readers []reader) reader {
	return func(ctx context.Context) (map[string][]byte, error) {
		all := map[string][]byte{}
		for _, read := range readers {
			files, err := read(ctx)
			if err != nil {
				return nil, err
			}
			maps.Copy(all, files)
		}
		return all, nil
	}
}

func (w *worker) configMap(name string, items []corev1.KeyToPath, optional *bool) reader {
	return func(ctx context.Context) (map[string][]byte, error) {
		object, err := w.options.Client.CoreV1().ConfigMaps(w.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, absent(err, optional)
		}
		data := maps.Clone(object.BinaryData)
		if data == nil {
			data = map[string][]byte{}
		}
		for key, value := range object.Data {
			data[key] = []byte(value)
		}
		return keyed("configmap "+name, data, items, optional)
	}
}

func (w *worker) secret(name string, items []corev1.KeyToPath, optional *bool) reader {
	return func(ctx context.Context) (map[string][]byte, error) {
		object, err := w.options.Client.CoreV1().Secrets(w.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, absent(err, optional)
		}
		return keyed("secret "+name, object.Data, items, optional)
	}
}

// absent is the error of an object that is not there: none if it is optional.
func absent(err error, optional *bool) error {
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil
	}
	return err
}

// token reads a token of the pod's account, bound to the pod. It is renewed before it expires.
func (w *worker) token(spec *corev1.ServiceAccountTokenProjection) reader {
	var current map[string][]byte
	var renew time.Time
	return func(ctx context.Context) (map[string][]byte, error) {
		if time.Now().Before(renew) {
			return current, nil
		}
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: spec.ExpirationSeconds,
			BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: w.pod.Name, UID: w.pod.UID},
		}}
		if spec.Audience != "" {
			request.Spec.Audiences = []string{spec.Audience}
		}
		accounts := w.options.Client.CoreV1().ServiceAccounts(w.pod.Namespace)
		answer, err := accounts.CreateToken(ctx, w.pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		current = map[string][]byte{spec.Path: []byte(answer.Status.Token)}
		renew = time.Now().Add(time.Until(answer.Status.ExpirationTimestamp.Time) * 4 / 5)
		return current, nil
	}
}

func (w *worker) downward(items []corev1.DownwardAPIVolumeFile) reader {
	return func(context.Context) (map[string][]byte, error) {
		files := map[string][]byte{}
		for _, item := range items {
			if item.FieldRef == nil {
				return nil, fmt.Errorf("the file %s has no fieldRef; this kubelet has no other", item.Path)
			}
			value, err := w.field(item.FieldRef.FieldPath)
			if err != nil {
				return nil, err
			}
			files[item.Path] = []byte(value)
		}
		return files, nil
	}
}
