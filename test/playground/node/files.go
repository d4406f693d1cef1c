// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"maps"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/resource"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/volume"
)

// tokenSource returns a ServiceAccount token of the pod for an audience.
type tokenSource func(audience string, seconds int64) ([]byte, error)

// volumeFiles computes the content of a volume. shared is true for a volume
// without content of its own, which the pod's programs write to (emptyDir).
func volumeFiles(pod *corev1.Pod, v corev1.Volume, from sources, token tokenSource) (files volume.Files, shared bool, err error) {
	switch {
	case v.EmptyDir != nil:
		return nil, true, nil
	case v.Secret != nil:
		files, err = from.secretFiles(pod.Namespace, v.Secret.SecretName, v.Secret.Items, v.Secret.Optional)
	case v.ConfigMap != nil:
		files, err = from.configMapFiles(pod.Namespace, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.Optional)
	case v.DownwardAPI != nil:
		files, err = downwardFiles(pod, v.DownwardAPI.Items)
	case v.Projected != nil:
		files, err = from.projected(pod, v.Projected.Sources, token)
	default:
		err = fmt.Errorf("the process node has no volumes of this kind")
	}
	if err != nil {
		return nil, false, fmt.Errorf("writing volume %s: %w", v.Name, err)
	}
	return files, false, nil
}

func (s sources) secretFiles(namespace, name string, items []corev1.KeyToPath, optional *bool) (volume.Files, error) {
	secret, err := s.secret(namespace, name)
	if absent(err, optional) {
		return volume.Files{}, nil
	}
	if err != nil {
		return nil, err
	}
	return pick("secret "+name, secret.Data, items, isTrue(optional))
}

func (s sources) configMapFiles(namespace, name string, items []corev1.KeyToPath, optional *bool) (volume.Files, error) {
	configMap, err := s.configMap(namespace, name)
	if absent(err, optional) {
		return volume.Files{}, nil
	}
	if err != nil {
		return nil, err
	}
	data := maps.Clone(configMap.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, value := range configMap.Data {
		data[key] = []byte(value)
	}
	return pick("configmap "+name, data, items, isTrue(optional))
}

// pick takes all keys, or the listed ones under their paths.
func pick(object string, data map[string][]byte, items []corev1.KeyToPath, optional bool) (volume.Files, error) {
	if len(items) == 0 {
		return data, nil
	}
	files := volume.Files{}
	for _, item := range items {
		value, ok := data[item.Key]
		if !ok && !optional {
			return nil, fmt.Errorf("%s has no key %s", object, item.Key)
		}
		if ok {
			files[path.Clean(item.Path)] = value
		}
	}
	return files, nil
}

func downwardFiles(pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile) (volume.Files, error) {
	files := volume.Files{}
	for _, item := range items {
		value, err := downward(pod, item)
		if err != nil {
			return nil, err
		}
		files[path.Clean(item.Path)] = []byte(value)
	}
	return files, nil
}

func downward(pod *corev1.Pod, item corev1.DownwardAPIVolumeFile) (string, error) {
	if item.FieldRef != nil {
		return field(pod, item.FieldRef.FieldPath)
	}
	for i := range pod.Spec.Containers {
		if item.ResourceFieldRef != nil && pod.Spec.Containers[i].Name == item.ResourceFieldRef.ContainerName {
			return resource.ExtractContainerResourceValue(item.ResourceFieldRef, &pod.Spec.Containers[i])
		}
	}
	return "", fmt.Errorf("the process node does not know the source of %s", item.Path)
}

// projected merges the sources of a projected volume.
func (s sources) projected(pod *corev1.Pod, parts []corev1.VolumeProjection, token tokenSource) (volume.Files, error) {
	all := volume.Files{}
	for _, part := range parts {
		var files volume.Files
		var err error
		switch {
		case part.Secret != nil:
			files, err = s.secretFiles(pod.Namespace, part.Secret.Name, part.Secret.Items, part.Secret.Optional)
		case part.ConfigMap != nil:
			files, err = s.configMapFiles(pod.Namespace, part.ConfigMap.Name, part.ConfigMap.Items, part.ConfigMap.Optional)
		case part.DownwardAPI != nil:
			files, err = downwardFiles(pod, part.DownwardAPI.Items)
		case part.ServiceAccountToken != nil:
			var value []byte
			value, err = token(part.ServiceAccountToken.Audience, expiry(part.ServiceAccountToken))
			files = volume.Files{path.Clean(part.ServiceAccountToken.Path): value}
		default:
			err = fmt.Errorf("the process node does not know this source")
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(all, files)
	}
	return all, nil
}

// expiry returns the requested lifetime of a projected token, in seconds.
func expiry(p *corev1.ServiceAccountTokenProjection) int64 {
	if p.ExpirationSeconds == nil {
		return 3600
	}
	return *p.ExpirationSeconds
}
