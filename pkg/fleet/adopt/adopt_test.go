// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"crypto/rand"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	service := fleet.Named(coreKind.WithKind("Service"), operatorv1.NamespaceHub, "a")
	service.SetUID("1")
	service.SetResourceVersion("2")
	service.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ClusterServiceVersion", Name: "gone"}})
	service.Object["spec"] = map[string]any{"clusterIP": "10.0.0.1", "type": "ClusterIP"}
	secret := fleet.Named(coreKind.WithKind("Secret"), operatorv1.NamespaceHub, operatorv1.SecretSigner)
	secret.Object["data"] = map[string]any{"tls.key": "c2VjcmV0"}
	packed, err := pack("uid", []*unstructured.Unstructured{service, secret})
	require.NoError(t, err)
	got, err := unpack(packed)
	require.NoError(t, err)
	want := fleet.Named(coreKind.WithKind("Service"), operatorv1.NamespaceHub, "a")
	want.Object["spec"] = map[string]any{"type": "ClusterIP"}
	require.Equal(t, []*unstructured.Unstructured{want}, got)
}

func TestARecordIsBounded(t *testing.T) {
	noise := make([]byte, recordLimit)
	_, err := rand.Read(noise)
	require.NoError(t, err)
	u := fleet.Named(coreKind.WithKind("ConfigMap"), "a", "b")
	u.Object["data"] = map[string]any{"noise": base64.StdEncoding.EncodeToString(noise)}
	_, err = pack("", []*unstructured.Unstructured{u})
	require.ErrorContains(t, err, "does not fit")
	for name, text := range map[string]string{"no base64": "-", "not packed": "c2VjcmV0"} {
		broken := fleet.Named(coreKind.WithKind("ConfigMap"), "a", "b")
		broken.Object["binaryData"] = map[string]any{recordKey: text}
		_, err := unpack(broken)
		require.Error(t, err, name)
	}
}

// healthy is a hub of another operator, as far as check reads it.
func healthy(t *testing.T) *state {
	t.Helper()
	one := int32(1)
	cm := operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Name: manager, Generation: 3}}
	cm.Status.ObservedGeneration = 3
	s := &state{
		managers: []operatorv1.ClusterManager{cm}, live: map[string]*unstructured.Unstructured{},
		operator: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: operatorv1.NamespaceOperator, Name: manager, UID: "1"}, Spec: appsv1.DeploymentSpec{Replicas: &one},
			Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1, ReadyReplicas: 1},
		},
	}
	kinds, err := crd.Hub()
	require.NoError(t, err)
	for _, k := range kinds {
		k.SetAnnotations(map[string]string{operatorv1.AnnotationVersion: "1.3.1"})
		s.live[key(k)] = k
	}
	return s
}

func TestWhatCannotBeAdoptedIsRefused(t *testing.T) {
	require.NoError(t, healthy(t).check())
	for cause, change := range map[string]func(*state){
		"is there":       func(s *state) { s.operator, s.managers = nil, nil },
		"are gone":       func(s *state) { s.managers = nil },
		"are other":      func(s *state) { s.managers[0].Name = "other" },
		"being deleted":  func(s *state) { s.managers[0].DeletionTimestamp = &metav1.Time{} },
		"it is hosted":   func(s *state) { s.managers[0].Spec.DeployOption.Mode = operatorv1.InstallModeHosted },
		"driver awsirsa": func(s *state) { s.managers[0].Spec.RegistrationConfiguration = drivers("csr", "awsirsa") },
		"driver grpc": func(s *state) {
			s.managers[0].Spec.WorkConfiguration = &operatorv1.WorkConfiguration{WorkDriver: "grpc"}
		},
		"put its": func(s *state) {
			s.operator.OwnerReferences = []metav1.OwnerReference{{Kind: "ClusterServiceVersion", Name: "v1"}}
		},
		"0/1 ready":   func(s *state) { s.operator.Status = appsv1.DeploymentStatus{} },
		"last change": func(s *state) { s.managers[0].Generation = 4 },
		"Applied=False": func(s *state) {
			s.managers[0].Status.Conditions = []metav1.Condition{{Type: operatorv1.ConditionApplied, Status: "False"}}
		},
		"one of its components": func(s *state) {
			d := fleet.Named(appsv1.SchemeGroupVersion.WithKind("Deployment"), operatorv1.NamespaceHub, "cluster-manager-work-webhook")
			d.SetLabels(map[string]string{operatorv1.LabelCreatedByClusterManager: manager})
			d.SetAnnotations(map[string]string{operatorv1.AnnotationVersion: "1.0.0"})
			s.live[key(d)] = d
		},
		"of release 1.4": func(s *state) { anyOf(s).SetAnnotations(map[string]string{operatorv1.AnnotationVersion: "1.4.0"}) },
		"has version v99": func(s *state) {
			anyOf(s).Object["spec"] = map[string]any{"versions": []any{map[string]any{"name": "v99"}}}
		},
	} {
		t.Run(cause, func(t *testing.T) {
			s := healthy(t)
			change(s)
			err := s.check()
			var e *fleet.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, fleet.Refused, e.Kind)
			require.Contains(t, e.Message+": "+e.Cause, cause)
			require.NotNil(t, e.Fix)
		})
	}
	resumed := healthy(t)
	resumed.record, resumed.operator.Status = &record{operator: "1"}, appsv1.DeploymentStatus{}
	require.NoError(t, resumed.check(), "a run that was interrupted goes on")
}

func drivers(kinds ...string) *operatorv1.RegistrationHubConfiguration {
	out := &operatorv1.RegistrationHubConfiguration{}
	for _, kind := range kinds {
		out.RegistrationDrivers = append(out.RegistrationDrivers, operatorv1.RegistrationDriverHub{AuthType: kind})
	}
	return out
}

func anyOf(s *state) *unstructured.Unstructured {
	return s.live["CustomResourceDefinition manifestworks.work.open-cluster-management.io"]
}
