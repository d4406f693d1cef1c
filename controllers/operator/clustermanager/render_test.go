// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// usual is a rendering of a ClusterManager that asks for nothing special.
func usual(change func(*rendering)) rendering {
	r := rendering{Image: "ours:1", Version: "v1.2.3", Replicas: 1, Split: new(DefaultSplit()), Features: Features{
		DefaultClusterSet: true, ResourceCleanup: true, AddOnManagement: true,
	}}
	if change != nil {
		change(&r)
	}
	return r
}

// rendered returns the object of that kind and name; nil if there is none.
func rendered[T any](t *testing.T, r rendering, kind, name string) *T {
	t.Helper()
	objects, err := r.objects()
	require.NoError(t, err)
	i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == kind && u.GetName() == name })
	if i < 0 {
		return nil
	}
	require.Equal(t, hub.Name, objects[i].GetLabels()[operatorv1.LabelCreatedByClusterManager])
	out, err := typed.FromUnstructured[T](objects[i])
	require.NoError(t, err)
	return out
}

func TestArgumentsOfComponents(t *testing.T) {
	for name, tc := range map[string]struct {
		component string
		change    func(*rendering)
		want      []string
	}{
		"no gate is named that is as usual": {"registration-controller", nil, []string{"registration"}},
		"the webhook of registration always names one": {"registration-webhook", nil, []string{
			"webhook", "registration", "--feature-gates=DefaultClusterSet=true", "--cert-dir=/var/run/secrets/hub/serving",
			"--client-ca-file=/var/run/secrets/hub/clients/ca-bundle.crt",
		}},
		"gates": {"work-controller", func(r *rendering) {
			r.Features.ManifestWorkReplicaSet, r.Features.CleanUpCompletedManifestWork = true, true
		}, []string{"work", "--feature-gates=CleanUpCompletedManifestWork=true", "--feature-gates=ManifestWorkReplicaSet=true"}},
		"a gate that is switched off": {"registration-controller", func(r *rendering) { r.Features.ResourceCleanup = false }, []string{
			"registration", "--feature-gates=ResourceCleanup=false",
		}},
		"profiles only where their API is served": {"registration-controller", func(r *rendering) { r.Features.ClusterProfile = true }, []string{"registration"}},
		"profiles that are to go": {"registration-controller", func(r *rendering) { r.Features.ProfilesServed = true }, []string{
			"registration", "--feature-gates=ClusterProfile=false",
		}},
		"users": {"registration-controller", func(r *rendering) {
			r.Features.AutoApprove = []string{"c"}
			r.Features.Labels = map[string]string{"b": "2", "a": "1"}
			r.Spec.RegistrationConfiguration = &operatorv1.RegistrationHubConfiguration{
				AutoApproveUsers: []string{"a", "b"},
				RegistrationDrivers: []operatorv1.RegistrationDriverHub{{
					AuthType: operatorv1.AuthTypeCSR, CSR: &operatorv1.CSRConfig{AutoApprovedIdentities: []string{"c"}},
				}},
			}
		}, []string{
			"registration", "--feature-gates=ManagedClusterAutoApproval=true", "--cluster-auto-approval-users=a,b", "--auto-approved-csr-users=c", "--labels=a=1,b=2",
		}},
		"clusters of Cluster API": {"registration-controller", func(r *rendering) {
			r.Features.ClusterImporter, r.Features.Renderers = true, []string{"render-auto", "render-from-config-secret"}
		}, []string{
			"registration", "--feature-gates=ClusterImporter=true", "--import-renderers=render-auto,render-from-config-secret",
		}},
		"identities of clusters, and copies of their tokens beside profiles": {"addon-manager-controller", func(r *rendering) {
			r.Features.ManagedServiceAccount, r.Features.EphemeralIdentity = true, true
			r.Features.ClusterProfile, r.Features.ProfilesServed = true, true
		}, []string{
			"addon", "--feature-gates=ClusterProfile=true", "--feature-gates=ManagedServiceAccount=true",
			"--feature-gates=ManagedServiceAccountEphemeralIdentity=true",
		}},
		"flags of the operator": {"placement-controller", func(r *rendering) { r.Split.All = []string{"--v=1"} }, []string{"placement", "--v=1"}},
		"explanations of placements": {"placement-controller", func(r *rendering) { r.Features.PlacementDebugServer = true }, []string{
			"placement", "--feature-gates=PlacementDebugServer=true", "--cert-dir=/var/run/secrets/hub/certificate",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := rendered[appsv1.Deployment](t, usual(tc.change), "Deployment", hub.Name+"-"+tc.component)
			require.NotNil(t, d)
			require.Equal(t, tc.want, d.Spec.Template.Spec.Containers[0].Args)
		})
	}
}

func TestFieldsOfTheSpecInADeployment(t *testing.T) {
	limits := corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
	r := usual(func(r *rendering) {
		r.Replicas, r.Pull = 3, corev1.PullNever
		r.Labels = map[string]string{"team": "a"}
		r.PullSecret = pullSecret(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pull"}, Data: map[string][]byte{"k": []byte("v")}})
		r.Spec.NodePlacement.NodeSelector = map[string]string{"disk": "ssd"}
		r.Spec.NodePlacement.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
		r.Spec.ResourceRequirement = &operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassResourceRequirement, ResourceRequirements: &limits}
	})
	d := rendered[appsv1.Deployment](t, r, "Deployment", "cluster-manager-registration-webhook")
	pod := d.Spec.Template.Spec
	require.EqualValues(t, 3, *d.Spec.Replicas)
	require.Equal(t, "a", d.Labels["team"])
	require.Equal(t, "a", d.Spec.Template.Labels["team"])
	require.Equal(t, d.Spec.Selector.MatchLabels["app"], d.Spec.Template.Labels["app"])
	require.NotEmpty(t, d.Annotations[operatorv1.AnnotationSpecHash])
	require.Equal(t, "registration-webhook-sa", pod.ServiceAccountName)
	require.Equal(t, r.Spec.NodePlacement.NodeSelector, pod.NodeSelector)
	require.Equal(t, r.Spec.NodePlacement.Tolerations, pod.Tolerations)
	require.Equal(t, []corev1.LocalObjectReference{{Name: operatorv1.SecretImagePull}}, pod.ImagePullSecrets)
	require.Len(t, pod.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, 2)
	require.True(t, *pod.SecurityContext.RunAsNonRoot)
	c := pod.Containers[0]
	require.Equal(t, corev1.PullNever, c.ImagePullPolicy)
	require.Equal(t, limits.Limits.Memory().String(), c.Resources.Limits.Memory().String())
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop)
	objects, err := r.objects()
	require.NoError(t, err)
	require.Equal(t, operatorv1.SecretImagePull, objects[0].GetName(), "the credentials come before the pods that need them")
	budgets := 0
	for _, u := range objects {
		if u.GetKind() == "PodDisruptionBudget" {
			budgets++
		}
	}
	require.Equal(t, 6, budgets)

	d = rendered[appsv1.Deployment](t, usual(nil), "Deployment", "cluster-manager-registration-webhook")
	require.Equal(t, "16Mi", d.Spec.Template.Spec.Containers[0].Resources.Requests.Memory().String())
	require.Empty(t, d.Spec.Template.Spec.ImagePullSecrets)
	require.Nil(t, rendered[appsv1.Deployment](t, usual(nil), "Deployment", "cluster-manager-work-controller"))
	cleaning := usual(func(r *rendering) { r.Features.CleanUpCompletedManifestWork = true })
	require.NotNil(t, rendered[appsv1.Deployment](t, cleaning, "Deployment", "cluster-manager-work-controller"))
}

func TestTheRightOnProfilesComesWithTheirAPI(t *testing.T) {
	const name = "open-cluster-management:cluster-manager-registration:controller"
	mayWrite := func(r *rbacv1.ClusterRole) bool {
		return slices.ContainsFunc(r.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "clusterprofiles") })
	}
	require.False(t, mayWrite(rendered[rbacv1.ClusterRole](t, usual(nil), "ClusterRole", name)))
	require.True(t, mayWrite(rendered[rbacv1.ClusterRole](t, usual(func(r *rendering) { r.Features.ClusterProfile = true }), "ClusterRole", name)))
}

func TestReplicasFollowTheControlPlane(t *testing.T) {
	require.EqualValues(t, 1, (&Split{}).replicasFor(0))
	require.EqualValues(t, 1, (&Split{}).replicasFor(1))
	require.EqualValues(t, 3, (&Split{}).replicasFor(2))
	require.EqualValues(t, 2, (&Split{Replicas: 2}).replicasFor(3))
	require.Len(t, (&Split{}).controlPlane(), 2, "Kubernetes has had two names for the role")
	require.Equal(t, []string{"a=b"}, (&Split{ControlPlane: "a=b"}).controlPlane())
	s := Split{PullSecret: "  "}
	require.NoError(t, s.Complete())
	require.Equal(t, operatorv1.SecretImagePull, s.PullSecret)
	require.ErrorContains(t, (&Split{ControlPlane: "a in"}).Complete(), "--control-plane-node-label-selector")
	require.ErrorContains(t, (&Split{Replicas: -1}).Complete(), "--deployment-replicas=-1")
}

func TestConditionsOfTheSplitLayout(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	well := func(name string) Component { return Component{Name: hub.Name + "-" + name, Found: true} }
	for name, tc := range map[string]struct {
		change                               func(map[string]*Component)
		progressing, registration, placement string
	}{
		"all are well": {func(map[string]*Component) {}, operatorv1.ReasonClusterManagerUpToDate,
			operatorv1.ReasonRegistrationFunctional, operatorv1.ReasonPlacementFunctional},
		"one is rolled out": {func(c map[string]*Component) { c["work-webhook"].Rolling = true },
			operatorv1.ReasonClusterManagerDeploymentRolling, operatorv1.ReasonRegistrationFunctional, operatorv1.ReasonPlacementFunctional},
		"the webhook of registration lacks pods": {func(c map[string]*Component) { c["registration-webhook"].Unavailable = true },
			operatorv1.ReasonClusterManagerUpToDate, operatorv1.ReasonUnavailableRegistrationPod, operatorv1.ReasonPlacementFunctional},
		"two are missing": {func(c map[string]*Component) {
			c["registration-controller"].Found, c["placement-controller"].Found = false, false
		},
			operatorv1.ReasonClusterManagerDeploymentRolling, operatorv1.ReasonGetRegistrationDeploymentFailed, operatorv1.ReasonGetPlacementDeploymentFailed},
	} {
		t.Run(name, func(t *testing.T) {
			all := map[string]*Component{}
			for _, c := range components {
				one := well(c.name)
				all[c.name] = &one
			}
			tc.change(all)
			s := State{Now: now}
			for _, c := range components {
				s.Components = append(s.Components, *all[c.name])
			}
			cm := &operatorv1.ClusterManager{}
			setConditions(s, cm, "")
			for kind, want := range map[string]string{
				operatorv1.ConditionProgressing: tc.progressing, operatorv1.ConditionHubRegistrationDegraded: tc.registration,
				operatorv1.ConditionHubPlacementDegraded: tc.placement,
			} {
				require.Equal(t, want, apimeta.FindStatusCondition(cm.Status.Conditions, kind).Reason)
			}
			before := cm.DeepCopy()
			s.Now = now.Add(time.Hour)
			setConditions(s, cm, "")
			require.Equal(t, before, cm, "a second look writes nothing")
		})
	}
}

func TestDecideAssembly(t *testing.T) {
	r := usual(func(r *rendering) { r.Features.ManifestWorkReplicaSet = true })
	wanted, err := r.objects()
	require.NoError(t, err)
	s := assemblyState{ClusterManager: &operatorv1.ClusterManager{}, Wanted: wanted, Found: map[reconcile.Target]*unstructured.Unstructured{}}
	for _, u := range wanted {
		s.All = append(s.All, targetOf(u))
	}
	require.Len(t, decideAssembly(s).Writes, len(wanted), "everything is missing")
	for _, u := range wanted {
		s.Found[targetOf(u)] = u.DeepCopy()
	}
	require.Empty(t, decideAssembly(s).Writes)
	_ = unstructured.SetNestedField(s.Found[s.All[len(s.All)-1]].Object, int64(0), "spec", "replicas")
	require.Len(t, decideAssembly(s).Writes, 1, "one was changed")
	s.Wanted, err = usual(nil).objects()
	require.NoError(t, err)
	writes := decideAssembly(s).Writes
	writes = slices.DeleteFunc(writes, func(w reconcile.Write) bool { _, applies := w.(reconcile.Apply); return applies })
	require.Len(t, writes, len(wanted)-len(s.Wanted), "a component is not wanted any more")
	first, ok := writes[0].(reconcile.Remove)
	require.True(t, ok)
	require.Equal(t, deploymentsResource, first.Resource, "its pods end before they lose their rights")
	s.Foreign = true
	require.Empty(t, decideAssembly(s).Writes)
	s.Foreign, s.ClusterManager.DeletionTimestamp = false, &metav1.Time{}
	require.Empty(t, decideAssembly(s).Writes)
}
