// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/volume"
)

// held is a source with one Secret and one ConfigMap, both named "held".
var held = sources{
	secret: func(_, name string) (*corev1.Secret, error) {
		if name != "held" {
			return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
		}
		return &corev1.Secret{Data: map[string][]byte{"a": []byte("secret a"), "b": []byte("secret b")}}, nil
	},
	configMap: func(_, name string) (*corev1.ConfigMap, error) {
		if name != "held" {
			return nil, apierrors.NewNotFound(corev1.Resource("configmaps"), name)
		}
		return &corev1.ConfigMap{Data: map[string]string{"a": "map a"}, BinaryData: map[string][]byte{"z": {0}}}, nil
	},
}

func aPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "space", Name: "pod", UID: "uid", Labels: map[string]string{"l": "v"}},
		Spec: corev1.PodSpec{NodeName: "n", ServiceAccountName: "sa", Containers: []corev1.Container{{
			Name:      "app",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
		}}},
		Status: corev1.PodStatus{PodIP: "10.244.0.5"},
	}
}

func TestExpand(t *testing.T) {
	known := map[string]string{"A": "1", "B": "$(A)"}
	for name, tc := range map[string]struct{ text, want string }{
		"a known name":                   {"x$(A)y", "x1y"},
		"a value is not expanded again":  {"$(B)", "$(A)"},
		"an unknown name stays":          {"$(C)", "$(C)"},
		"two dollars are one":            {"$$(A)", "$(A)"},
		"three dollars":                  {"$$$(A)", "$1"},
		"a dollar before something else": {"$A $", "$A $"},
		"a name without end":             {"$(A", "$(A"},
		"several":                        {"$(A)$(A)", "11"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, expand(tc.text, known)) })
	}
}

func TestEnvironment(t *testing.T) {
	fieldOf := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	pod := aPod()
	c := &pod.Spec.Containers[0]
	c.EnvFrom = []corev1.EnvFromSource{
		{Prefix: "S_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("held")}},
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("held")}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("gone"), Optional: ptr.To(true)}},
	}
	c.Env = []corev1.EnvVar{
		{Name: "PLAIN", Value: "$(BASE) $(LATER)"},
		{Name: "LATER", Value: "late"},
		{Name: "NAME", ValueFrom: fieldOf("metadata.name")}, {Name: "LABEL", ValueFrom: fieldOf("metadata.labels['l']")},
		{Name: "NODE", ValueFrom: fieldOf("spec.nodeName")}, {Name: "ACCOUNT", ValueFrom: fieldOf("spec.serviceAccountName")},
		{Name: "IP", ValueFrom: fieldOf("status.podIP")}, {Name: "HOST", ValueFrom: fieldOf("status.hostIP")},
		{
			Name:      "MEMORY",
			ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"}},
		},
		{
			Name:      "KEY",
			ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("held"), Key: "b"}},
		},
		{
			Name:      "MAP",
			ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named("held"), Key: "a"}},
		},
		{
			Name:      "NONE",
			ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("held"), Key: "x", Optional: ptr.To(true)}},
		},
		{
			Name:      "NOMAP",
			ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named("gone"), Key: "x", Optional: ptr.To(true)}},
		},
	}
	got, err := environment(pod, c, map[string]string{"BASE": "base"}, held)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(map[string]string{
		"BASE": "base", "S_a": "secret a", "S_b": "secret b", "a": "map a", "PLAIN": "base $(LATER)", "LATER": "late",
		"NAME": "pod", "LABEL": "v", "NODE": "n", "ACCOUNT": "sa", "IP": "10.244.0.5", "HOST": nodeAddress,
		"MEMORY": "67108864", "KEY": "secret b", "MAP": "map a",
	}, got))
	require.Equal(t, []string{"A=1", "B=2"}, list(map[string]string{"B": "2", "A": "1"}))
}

func TestEnvironmentNamesWhatIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		source corev1.EnvVarSource
		want   string
	}{
		"a secret": {
			corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "gone"}}},
			`secrets "gone" not found`,
		},
		"a key": {
			corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "held"}, Key: "x"}},
			"secret held has no key x",
		},
		"a config map": {
			corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "gone"}}},
			`configmaps "gone" not found`,
		},
		"a map's key": {
			corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "held"}, Key: "x"}},
			"configmap held has no key x",
		},
		"another source": {corev1.EnvVarSource{}, "does not know this source"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &corev1.Container{Env: []corev1.EnvVar{{Name: "VARIABLE", ValueFrom: &tc.source}}}
			_, err := environment(aPod(), c, nil, held)
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, "VARIABLE")
		})
	}
	_, err := environment(
		aPod(),
		&corev1.Container{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "gone"}}}}},
		nil, held,
	)
	require.ErrorContains(t, err, `"gone" not found`)
}

func TestVolumeFiles(t *testing.T) {
	token := func(audience string, seconds int64) ([]byte, error) {
		require.Equal(t, "someone", audience)
		require.Equal(t, int64(3607), seconds)
		return []byte("token"), nil
	}
	optional := ptr.To(true)
	for name, tc := range map[string]struct {
		source corev1.VolumeSource
		want   volume.Files
		shared bool
		err    string
	}{
		"an empty folder": {source: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, shared: true},
		"a secret": {
			source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "held"}},
			want:   volume.Files{"a": []byte("secret a"), "b": []byte("secret b")},
		},
		"a part of a secret": {
			source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "held", Items: []corev1.KeyToPath{{Key: "b", Path: "deep//x"}}}},
			want:   volume.Files{"deep/x": []byte("secret b")},
		},
		"a missing key": {
			source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "held", Items: []corev1.KeyToPath{{Key: "x", Path: "x"}}}},
			err:    "secret held has no key x",
		},
		"an optional key": {
			source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "held", Optional: optional, Items: []corev1.KeyToPath{{Key: "x", Path: "x"}}}},
			want:   volume.Files{},
		},
		"an optional secret": {
			source: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "gone", Optional: optional}},
			want:   volume.Files{},
		},
		"a config map": {
			source: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "held"}}},
			want:   volume.Files{"a": []byte("map a"), "z": {0}},
		},
		"an optional map": {
			source: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "gone"}, Optional: optional}},
			want:   volume.Files{},
		},
		"fields of the pod": {
			source: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "name", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
				{Path: "memory", ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "app", Resource: "limits.memory"}},
			}}},
			want: volume.Files{"name": []byte("pod"), "memory": []byte("67108864")},
		},
		"a field of no container": {
			source: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
				{
					Path:             "memory",
					ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "other", Resource: "limits.memory"},
				},
			}}},
			err: "does not know the source of memory",
		},
		"several sources": {
			source: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{
					ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "someone", ExpirationSeconds: ptr.To[int64](3607), Path: "token"},
				},
				{
					ConfigMap: &corev1.ConfigMapProjection{
						LocalObjectReference: corev1.LocalObjectReference{Name: "held"},
						Items:                []corev1.KeyToPath{{Key: "a", Path: "map"}},
					},
				},
				{
					Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "held"}, Items: []corev1.KeyToPath{{Key: "a", Path: "secret"}}},
				},
				{
					DownwardAPI: &corev1.DownwardAPIProjection{
						Items: []corev1.DownwardAPIVolumeFile{{Path: "space", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
					},
				},
			}}},
			want: volume.Files{"token": []byte("token"), "map": []byte("map a"), "secret": []byte("secret a"), "space": []byte("space")},
		},
		"an unknown source": {
			source: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{}}}},
			err:    "does not know this source",
		},
		"another kind": {
			source: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}},
			err:    "no volumes of this kind",
		},
	} {
		t.Run(name, func(t *testing.T) {
			files, shared, err := volumeFiles(aPod(), corev1.Volume{Name: "v", VolumeSource: tc.source}, held, token)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				require.ErrorContains(t, err, "volume v")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.shared, shared)
			require.Empty(t, cmp.Diff(tc.want, files))
		})
	}
}
