// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, u := range objects {
		if u.GetKind() == kind && u.GetName() == name {
			return u
		}
	}
	t.Fatalf("%s %s is missing", kind, name)
	return nil
}

func TestObjectsComeInTheOrderOfTheirApplication(t *testing.T) {
	objects, err := Objects(Options{Image: "ghcr.io/kubectl-ocm/ocm-agent:v0.1.0", ClusterName: "c1", BootstrapKubeconfig: []byte("k")})
	require.NoError(t, err)
	var kinds []string
	for _, u := range objects {
		if n := len(kinds); n == 0 || kinds[n-1] != u.GetKind() {
			kinds = append(kinds, u.GetKind())
		}
		require.Equal(t, "klusterlet", u.GetLabels()["open-cluster-management.io/created-by-klusterlet"], "%s %s", u.GetKind(), u.GetName())
	}
	require.Equal(t, []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
		"CustomResourceDefinition", "Secret", "Deployment", "Klusterlet"}, kinds)
	require.Equal(t, map[string]string{
		operatorv1.LabelCreatedByKlusterlet: "klusterlet", operatorv1.LabelKlusterlet: "klusterlet",
	}, find(t, objects, "Namespace", "open-cluster-management-agent").GetLabels())
	require.Equal(t, "management", find(t, objects, "Namespace", "open-cluster-management-agent-addon").GetAnnotations()["workload.openshift.io/allowed"])
}

func TestBootstrapSecretIsLeftOutWithoutContent(t *testing.T) {
	objects, err := Objects(Options{Image: "i", ClusterName: "c1"})
	require.NoError(t, err)
	for _, u := range objects {
		require.NotEqual(t, "Secret", u.GetKind())
	}
	objects, err = Objects(Options{Image: "i", ClusterName: "c1", BootstrapKubeconfig: []byte("kube")})
	require.NoError(t, err)
	secret, err := typed.FromUnstructured[corev1.Secret](find(t, objects, "Secret", "bootstrap-hub-kubeconfig"))
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"kubeconfig": []byte("kube")}, secret.Data)
}

func TestDeploymentRunsOneProcessThatHoldsNothing(t *testing.T) {
	objects, err := Objects(Options{
		Image: "registry/ocm-agent:v0.1.0", ClusterName: "c1", Namespace: "open-cluster-management-x", ImagePullPolicy: corev1.PullNever,
		Spec: operatorv1.KlusterletSpec{
			PriorityClassName: "system-cluster-critical",
			NodePlacement: operatorv1.NodePlacement{
				NodeSelector: map[string]string{"role": "infra"},
				Tolerations:  []corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpExists}},
			},
			ResourceRequirement: &operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassBestEffort},
		},
	})
	require.NoError(t, err)
	d, err := typed.FromUnstructured[appsv1.Deployment](find(t, objects, "Deployment", "klusterlet-agent"))
	require.NoError(t, err)
	require.Equal(t, "open-cluster-management-x", d.Namespace)
	require.Equal(t, int32(1), *d.Spec.Replicas)
	require.Equal(t, appsv1.RecreateDeploymentStrategyType, d.Spec.Strategy.Type)
	pod := d.Spec.Template
	require.Equal(t, d.Spec.Selector.MatchLabels["app"], pod.Labels["app"])
	require.Equal(t, "klusterlet-agent", pod.Labels["app"])
	require.Equal(t, `{"effect": "PreferredDuringScheduling"}`, pod.Annotations["target.workload.openshift.io/management"])
	require.Equal(t, "klusterlet-work-sa", pod.Spec.ServiceAccountName)
	require.Equal(t, "system-cluster-critical", pod.Spec.PriorityClassName)
	require.Equal(t, "infra", pod.Spec.NodeSelector["role"])
	require.Len(t, pod.Spec.Tolerations, 1)
	require.Empty(t, pod.Spec.Volumes)
	c := pod.Spec.Containers[0]
	require.Equal(t, "registry/ocm-agent:v0.1.0", c.Image)
	require.Equal(t, corev1.PullNever, c.ImagePullPolicy)
	require.Equal(t, []string{"run"}, c.Args)
	require.Empty(t, c.Resources)
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	require.True(t, *c.SecurityContext.RunAsNonRoot)
	require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
	for path, probe := range map[string]*corev1.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		require.Equal(t, path, probe.HTTPGet.Path)
		require.Equal(t, int32(8443), probe.HTTPGet.Port.IntVal)
		require.Equal(t, corev1.URISchemeHTTPS, probe.HTTPGet.Scheme)
	}
}

func TestKlusterletCarriesTheGivenSpec(t *testing.T) {
	objects, err := Objects(Options{Image: "i", ClusterName: "c1", Spec: operatorv1.KlusterletSpec{
		ClusterName: "ignored", DeployOption: operatorv1.KlusterletDeployOption{Mode: operatorv1.InstallModeHosted},
		RegistrationConfiguration: &operatorv1.RegistrationConfiguration{ClientCertExpirationSeconds: 3600},
	}})
	require.NoError(t, err)
	u := find(t, objects, "Klusterlet", "klusterlet")
	k, err := typed.FromUnstructured[operatorv1.Klusterlet](u)
	require.NoError(t, err)
	require.Equal(t, "c1", k.Spec.ClusterName)
	require.Equal(t, "open-cluster-management-agent", k.Spec.Namespace)
	require.Equal(t, operatorv1.InstallModeSingleton, k.Spec.DeployOption.Mode)
	require.Equal(t, int32(3600), k.Spec.RegistrationConfiguration.ClientCertExpirationSeconds)
	require.NotContains(t, u.Object, "status")
}

func TestObjectsNeedImageAndName(t *testing.T) {
	_, err := Objects(Options{ClusterName: "c1"})
	require.ErrorContains(t, err, "required")
	_, err = Objects(Options{Image: "i"})
	require.ErrorContains(t, err, "required")
}

func TestObjectsAreTheSameEachTime(t *testing.T) {
	o := Options{Image: "i", ClusterName: "c1", NarrowRights: true, Namespace: "open-cluster-management-x"}
	first, err := Objects(o)
	require.NoError(t, err)
	second, err := Objects(o)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(first, second))
}
