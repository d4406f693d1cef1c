// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubectl/pkg/util/fieldpath"
	"k8s.io/kubectl/pkg/util/resource"
)

// sources is where the content of environment and volumes comes from.
type sources struct {
	secret    func(namespace, name string) (*corev1.Secret, error)
	configMap func(namespace, name string) (*corev1.ConfigMap, error)
}

// environment computes the environment that a container's manifest asks for, on top of
// base. The status of pod has its addresses. Entries refer to earlier ones by $(NAME).
func environment(pod *corev1.Pod, c *corev1.Container, base map[string]string, from sources) (map[string]string, error) {
	env := maps.Clone(base)
	for _, source := range c.EnvFrom {
		values, err := from.whole(pod.Namespace, source)
		if err != nil {
			return nil, err
		}
		for key, value := range values {
			env[source.Prefix+key] = value
		}
	}
	for _, entry := range c.Env {
		value, found, err := from.value(pod, c, entry, env)
		if err != nil {
			return nil, fmt.Errorf("reading environment variable %s: %w", entry.Name, err)
		}
		if found {
			env[entry.Name] = value
		}
	}
	return env, nil
}

// list returns an environment in the form of os/exec, sorted.
func list(env map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// whole reads all keys of an envFrom entry.
func (s sources) whole(namespace string, source corev1.EnvFromSource) (map[string]string, error) {
	values := map[string]string{}
	switch {
	case source.SecretRef != nil:
		secret, err := s.secret(namespace, source.SecretRef.Name)
		if absent(err, source.SecretRef.Optional) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading environment: %w", err)
		}
		for key, value := range secret.Data {
			values[key] = string(value)
		}
	case source.ConfigMapRef != nil:
		configMap, err := s.configMap(namespace, source.ConfigMapRef.Name)
		if absent(err, source.ConfigMapRef.Optional) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading environment: %w", err)
		}
		maps.Copy(values, configMap.Data)
	}
	return values, nil
}

// value returns one variable; found is false when it is optional and absent.
func (s sources) value(pod *corev1.Pod, c *corev1.Container, entry corev1.EnvVar, known map[string]string) (value string, found bool, err error) {
	from := entry.ValueFrom
	if from == nil {
		return expand(entry.Value, known), true, nil
	}
	switch {
	case from.FieldRef != nil:
		value, err = field(pod, from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		value, err = resource.ExtractContainerResourceValue(from.ResourceFieldRef, c)
	case from.SecretKeyRef != nil:
		return s.secretKey(pod.Namespace, from.SecretKeyRef)
	case from.ConfigMapKeyRef != nil:
		return s.configMapKey(pod.Namespace, from.ConfigMapKeyRef)
	default:
		err = fmt.Errorf("the process node does not know this source")
	}
	return value, err == nil, err
}

// field reads a field of a pod by the paths of the downward API.
func field(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return pod.Status.PodIP, nil
	case "status.hostIP", "status.hostIPs":
		return nodeAddress, nil
	default:
		return fieldpath.ExtractFieldPathAsString(pod, path)
	}
}

func (s sources) secretKey(namespace string, ref *corev1.SecretKeySelector) (string, bool, error) {
	secret, err := s.secret(namespace, ref.Name)
	if absent(err, ref.Optional) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	value, ok := secret.Data[ref.Key]
	if !ok && !isTrue(ref.Optional) {
		return "", false, fmt.Errorf("secret %s has no key %s", ref.Name, ref.Key)
	}
	return string(value), ok, nil
}

func (s sources) configMapKey(namespace string, ref *corev1.ConfigMapKeySelector) (string, bool, error) {
	configMap, err := s.configMap(namespace, ref.Name)
	if absent(err, ref.Optional) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	value, ok := configMap.Data[ref.Key]
	if !ok && !isTrue(ref.Optional) {
		return "", false, fmt.Errorf("configmap %s has no key %s", ref.Name, ref.Key)
	}
	return value, ok, nil
}

// absent reports whether an optional object is missing, which is not an error.
func absent(err error, optional *bool) bool { return apierrors.IsNotFound(err) && isTrue(optional) }

func isTrue(b *bool) bool { return b != nil && *b }
